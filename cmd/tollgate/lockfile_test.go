package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecondServiceThroughLink checks that a second service on a link to the database file
// of a running service ends at once and does not disturb the first. Subcommands work
// through a symbolic link, but not through a hard link.
func TestSecondServiceThroughLink(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		link       func(path, linkPath string) error
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
			linkPath := filepath.Join(t.TempDir(), "other.db")
			if err := c.link(filepath.Join(dir, "data", "tollgate.db"), linkPath); err != nil {
				t.Fatal(err)
			}
			db := "--database=sqlite:" + linkPath
			second := execute(t, dir, "serve", "--listen", "127.0.0.1:0", db)
			if second.code != 2 || !strings.HasPrefix(second.errors, "tollgate: database: ") || !strings.Contains(second.errors, c.want) ||
				strings.Count(second.errors, "\n") != 1 {
				t.Errorf("the second service ended with %+v, want exit 2 and %q", second, c.want)
			}
			if got := tollgate(t, dir, "account", "list", db); got.code != c.code || (got.code != 0 && !strings.Contains(got.errors, c.want)) {
				t.Errorf("the subcommand ended with %+v, want exit %d", got, c.code)
			}
			if rest, err := io.ReadAll(lines); err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
				t.Errorf("the stream was cut: %v, %s", err, rest)
			}
			if status, body := s.request("GET", "/v1/usage", secret, ""); status != 200 || !strings.Contains(body, `"billed_requests":1`) {
				t.Errorf("GET /v1/usage answered %d %s, want one billed request", status, body)
			}
			s.signal(os.Interrupt)
			if code, log := s.wait(); code != 0 || strings.Contains(log, "declared dead") {
				t.Errorf("the first service ended with %d and the log %s, want 0 and not declared dead", code, log)
			}
			must(t, dir, "audit")
		})
	}
}
