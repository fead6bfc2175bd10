package api

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestPreference checks the reading of Prefer. Unknown and malformed preferences are ignored.
func TestPreference(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lines []string
		wait  time.Duration // -1 for none
		async bool
	}{
		{nil, -1, false},
		{[]string{"wait=30"}, 30 * time.Second, false},
		{[]string{"Wait = 30"}, 30 * time.Second, false},
		{[]string{`wait="30"`}, 30 * time.Second, false},
		{[]string{"respond-async, wait=10"}, 10 * time.Second, true},
		{[]string{"RESPOND-ASYNC"}, -1, true},
		{[]string{"handling=lenient;x=1, wait=5; y=2"}, 5 * time.Second, false},
		{[]string{"return=minimal", "wait=7"}, 7 * time.Second, false},
		{[]string{"wait=3, wait=9"}, 3 * time.Second, false},
		{[]string{"wait=x, wait=9"}, 9 * time.Second, false},
		{[]string{"wait=0"}, 0, false},
		{[]string{"wait"}, -1, false},
		{[]string{"wait=-1"}, -1, false},
		{[]string{"wait=1.5"}, -1, false},
		{[]string{"wait=99999999999999999999"}, -1, false},
		{[]string{"wait=2000000000"}, longestPreference, false},
		{[]string{"waiting=5"}, -1, false},
		{[]string{",;=,"}, -1, false},
	} {
		p := readPreference(http.Header{"Prefer": test.lines})
		wait := time.Duration(-1)
		if p.wait != nil {
			wait = *p.wait
		}
		if wait != test.wait || p.async != test.async {
			t.Errorf("Prefer %q: wait %v, async %t, want %v and %t", strings.Join(test.lines, " | "), wait, p.async, test.wait, test.async)
		}
	}
}

// FuzzPreference checks that every header is read, with a wait within its bounds.
func FuzzPreference(f *testing.F) {
	f.Add("respond-async, wait=10;x")
	f.Fuzz(func(t *testing.T, line string) {
		if p := readPreference(http.Header{"Prefer": {line}}); p.wait != nil && (*p.wait < 0 || *p.wait > longestPreference) {
			t.Errorf("Prefer %q: wait %v", line, *p.wait)
		}
	})
}
