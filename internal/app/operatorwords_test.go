package app

import (
	"regexp"
	"strings"
	"testing"
)

// TestFirstStartSaysHowToRunIt: whoever starts the service on an empty machine reads how
// to get to the operator's pages, with a token that nobody guesses where there is none.
func TestFirstStartSaysHowToRunIt(t *testing.T) {
	t.Parallel()
	const base = "http://127.0.0.1:8080"
	for want, s := range map[string]Settings{
		`(?s)open http://127\.0\.0\.1:8080/console/operator:\n\n  TOLLGATE_ADMIN_TOKEN=[A-Z2-7]{26} \./build/tollgate serve$`: {},
		`^To run it: http://127\.0\.0\.1:8080/console/operator, with the admin_token\.$`:                                      {AdminToken: "x"},
		`^To run it: /console/operator at 10\.0\.0\.1:9000, with the admin_token\.$`: {AdminToken: "x",
			AdminListen: "10.0.0.1:9000"},
	} {
		if got := operatorWords(&s, base, "./build/tollgate"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q is no %q", got, want)
		}
	}
	var out strings.Builder
	if err := (&demo{}).show(&out, base, "To run it"); err != nil || !strings.HasSuffix(out.String(), "To run it\n\n") {
		t.Errorf("%v: %s", err, out.String())
	}
}
