package app

import (
	"errors"
	"io"
	"os"
	"testing"

	"tollgate/internal/store/storetest"
)

// TestShortTokens: a token that can be guessed is for this machine alone.
func TestShortTokens(t *testing.T) {
	t.Parallel()
	for listen, local := range map[string]bool{
		"127.0.0.1:0": true, "127.8.0.1:80": true, "[::1]:80": true, "localhost:80": true, "[::ffff:127.0.0.1]:80": true,
		":0": false, "0.0.0.0:0": false, "[::]:0": false, "192.0.2.1:80": false, "gateway.example:80": false,
	} {
		if isLoopback(listen) != local {
			t.Errorf("%s: %t", listen, !local)
		}
	}
	s := testSettings(t, storetest.SQLite(t), "admin_token: fifteen-letters")
	s.Listen = ":0"
	_, err := New(t.Context(), s, Options{Stdout: io.Discard, Stderr: io.Discard, Lookup: os.LookupEnv})
	var fault *SettingError
	if !errors.As(err, &fault) || fault.Key != "admin_token" {
		t.Errorf("got %v", err)
	}
}

// TestPublicURLWithoutQuery: paths are added to it.
func TestPublicURLWithoutQuery(t *testing.T) {
	t.Parallel()
	var to string
	for _, bad := range []string{"https://h.example/?a=b", "https://h.example?", "https://h.example/#x"} {
		if readPublicURL(&to, bad) == nil {
			t.Errorf("%s passes as %q", bad, to)
		}
	}
	if err := readPublicURL(&to, "https://h.example/gate/"); err != nil || to != "https://h.example/gate" {
		t.Errorf("%q %v", to, err)
	}
}
