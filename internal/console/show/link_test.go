package show_test

import (
	"testing"

	"tollgate/internal/console/show"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://ai.example.com": "ai.example.com", "https://ai.example.com:8443/sub": "ai.example.com", "http://127.0.0.1:8080": "127.0.0.1",
		"http://[::1]:8080": "tollgate", "": "tollgate",
	} {
		if got := show.Host(base); got != want {
			t.Errorf("Host(%q) = %q, want %q", base, got, want)
		}
	}
}
