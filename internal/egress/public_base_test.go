package egress_test

import (
	"testing"

	"tollgate/internal/egress"
)

func TestPublicBase(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]bool{
		"https://media.example.com/media":       true,
		"http://media.example.com.:8080/media":  true,
		"https://8.8.8.8/media":                 true,
		"https://[2606:4700::1111]/media":       true,
		"http://127.0.0.1:8080/media":           false,
		"http://127.1/media":                    false,
		"http://2130706433/media":               false,
		"http://0x7f.1/media":                   false,
		"http://localhost:8080/media":           false,
		"http://media.localhost/media":          false,
		"http://media/media":                    false,
		"http://media.local/media":              false,
		"http://media.internal/media":           false,
		"http://media.test/media":               false,
		"http://media.home.arpa/media":          false,
		"http://media.example/media":            false,
		"http://media.invalid./media":           false,
		"http://x.onion/media":                  false,
		"http://media.lan/media":                false,
		"http://10.0.0.1/media":                 false,
		"http://192.168.1.1/media":              false,
		"http://169.254.169.254/media":          false,
		"http://100.64.0.1/media":               false,
		"http://[::1]/media":                    false,
		"http://[fd00::1]/media":                false,
		"http://[fe80::1]/media":                false,
		"http://[::ffff:127.0.0.1]/media":       false,
		"http://[::ffff:8.8.8.8]/media":         true,
		"http://0.0.0.0:8080/media":             false,
		"/media":                                false,
		"ftp://media.example.com/media":         false,
		"http://user:pw@media.example.com/":     false,
		"http://%zz/":                           false,
		"https://media.example.com:99999/media": false,
	} {
		if got := egress.PublicBase(base); got != want {
			t.Errorf("PublicBase(%s) = %v, want %v", base, got, want)
		}
	}
}
