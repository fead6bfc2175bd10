package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecondServiceUnderAnotherName starts a second service on the same database file
// through a symbolic and a hard link during a stream. The second service ends at once, and
// the stream completes. Subcommands work through the symbolic link only.
func TestSecondServiceUnderAnotherName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		link       func(path, other string) error
		code       int // exit code of a subcommand
	}{
		{"symbolic", "another tollgate process serves this database file", os.Symlink, 0},
		{"hard", "another name (a hard link)", os.Link, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, secret := slowService(t, dir, "{tokens: 100, chunk_delay: 20ms}")
			answer, lines := s.stream(secret)
			defer answer.Body.Close()
			other := filepath.Join(t.TempDir(), "other.db")
			if err := c.link(filepath.Join(dir, "data", "tollgate.db"), other); err != nil {
				t.Fatal(err)
			}
			db := "--database=sqlite:" + other
			second := execute(t, dir, "serve", "--listen", "127.0.0.1:0", db)
			if second.code != 2 || !strings.HasPrefix(second.errors, "tollgate: database: ") || !strings.Contains(second.errors, c.want) ||
				strings.Count(second.errors, "\n") != 1 {
				t.Errorf("a second service: %+v", second)
			}
			if got := tollgate(t, dir, "account", "list", db); got.code != c.code || (got.code != 0 && !strings.Contains(got.errors, c.want)) {
				t.Errorf("a subcommand: %+v", got)
			}
			if rest, err := io.ReadAll(lines); err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
				t.Errorf("the stream was cut: %v, %s", err, rest)
			}
			if status, body := s.request("GET", "/v1/usage", secret, ""); status != 200 || !strings.Contains(body, `"billed_requests":1`) {
				t.Errorf("usage: %d %s", status, body)
			}
			s.signal(os.Interrupt)
			if code, log := s.wait(); code != 0 || strings.Contains(log, "declared dead") {
				t.Errorf("exit %d: %s", code, log)
			}
			must(t, dir, "audit")
		})
	}
}
