package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestBearer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, want string }{
		{"Bearer sk-1", "sk-1"},
		{"bearer sk-1", "sk-1"},
		{"BEARER   sk-1  ", "sk-1"},
		{"", ""},
		{"Bearer", ""},
		{"Bearer ", ""},
		{"Bearersk-1", ""},
		{"sk-1", ""},
		{"Basic c2stMTo=", ""},
		{"Bearer sk-1 sk-2", "sk-1 sk-2"},
	} {
		if got := Bearer(http.Header{"Authorization": {c.header}}); got != c.want {
			t.Errorf("%q: got %q, want %q", c.header, got, c.want)
		}
	}
	if got := Bearer(http.Header{"X-Api-Key": {"sk-1"}}); got != "" {
		t.Errorf("x-api-key was read: %q", got)
	}
}

func FuzzBearer(f *testing.F) {
	f.Add("Bearer sk-1")
	f.Add("bearer  ")
	f.Fuzz(func(t *testing.T, header string) {
		got := Bearer(http.Header{"Authorization": {header}})
		if got != strings.TrimSpace(got) || !strings.HasSuffix(strings.TrimSpace(header), got) {
			t.Fatalf("%q: got %q", header, got)
		}
		if got != "" && !strings.EqualFold(strings.TrimSpace(header)[:6], "bearer") {
			t.Fatalf("%q: read a key %q without Bearer", header, got)
		}
	})
}
