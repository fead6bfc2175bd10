package app

import (
	"regexp"
	"strings"
	"testing"
)

// TestFirstStartSaysHowToRunIt checks that the first start explains how to open the operator's
// pages, with an unguessable token, and how to start the service again.
func TestFirstStartSaysHowToRunIt(t *testing.T) {
	t.Parallel()
	const base, restart = "http://127.0.0.1:8081", "./build/tollgate serve --listen=127.0.0.1:8081"
	const again = `To start it again, in this folder:\n\n  \./build/tollgate serve --listen=127\.0\.0\.1:8081$`
	for _, c := range []struct {
		settings Settings
		made     bool
		want     string
	}{
		{Settings{}, false, `open http://127\.0\.0\.1:8081/console/operator:\n\n  TOLLGATE_ADMIN_TOKEN=[A-Z2-7]{26} ` +
			`\./build/tollgate serve --listen=127\.0\.0\.1:8081$`},
		{Settings{AdminToken: "x"}, false, `open http://127\.0\.0\.1:8081/console/operator\nwith the admin_token\.\n(?s:.*)` + again},
		{Settings{AdminToken: "x", AdminTokenFile: "token"}, false, `with the operator's token, which is in token\.\n(?s:.*)` + again},
		{Settings{AdminToken: "secret-of-the-file", AdminTokenFile: "data/admin-token"}, true,
			`open http://127\.0\.0\.1:8081/console/operator\n(?s:.*)in data/admin-token:\n\n  secret-of-the-file\n(?s:.*)` + again},
	} {
		got := operatorWords(&c.settings, c.made, base, restart)
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%q does not match %q", got, c.want)
		}
	}
	var out strings.Builder
	if err := (&demo{}).show(&out, base, "To run it"); err != nil || !strings.HasSuffix(out.String(), "To run it\n\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}
