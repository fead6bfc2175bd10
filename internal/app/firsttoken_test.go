package app

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// operatorStatus returns the status of an operator API request with a token.
func operatorStatus(t *testing.T, p *runningApp, token string) int {
	t.Helper()
	const head = "GET /admin/v1/accounts HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
	return sendRaw(t, p.server, head+"Authorization: Bearer "+token+"\r\n\r\n").status
}

// TestFirstStartMakesAToken checks that on SQLite the first start writes a token for the operator
// API, valid at once, after a restart, and for commands to the service.
func TestFirstStartMakesAToken(t *testing.T) {
	t.Parallel()
	file := file(t, "catalog.yaml", string(catalog.Sandbox()))
	for name, more := range map[string]string{
		"demo": "{}", "catalog": "{no_demo: true, catalog: '" + file + "'}", "two addresses": "admin_listen: 127.0.0.1:0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := storetest.SQLite(t)
			path := tokenBeside(url)
			p := serve(t, testSettings(t, url, more))
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			token := strings.TrimSpace(string(raw))
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || len(token) < shortestToken {
				t.Errorf("%v, %v, %d characters", info.Mode(), err, len(token))
			}
			at := p.server
			if p.operatorServer != nil {
				at = p.operatorServer
			}
			consoleURL := "http://" + at.Reachable() + "/console/operator"
			if out := p.out.String(); !strings.Contains(out, token) || !strings.Contains(out, path) || !strings.Contains(out, consoleURL) {
				t.Errorf("the output lacks the token, the file or %s: %s", consoleURL, out)
			}
			if p.operatorServer == nil {
				if got := operatorStatus(t, p, token); got != http.StatusOK {
					t.Errorf("the first start answers %d", got)
				}
			}
			p.stop(t)

			s := testSettings(t, url, more)
			s.AdminListen = ""
			p = serve(t, s)
			defer p.stop(t)
			if got := operatorStatus(t, p, token); got != http.StatusOK || strings.Contains(p.out.String(), token) {
				t.Errorf("the second start answers %d and shows %q", got, p.out)
			}
			s.Listen = p.server.Address()
			answer, err := AskService(t.Context(), s, OperatorRequest{Method: http.MethodGet, Path: "/accounts"})
			if err != nil || answer.Status != http.StatusOK {
				t.Errorf("a command gets %d, %v", answer.Status, err)
			}
		})
	}
}

// tokenBeside returns the path of the token's file beside an SQLite database.
func tokenBeside(url string) string {
	return filepath.Join(filepath.Dir(strings.TrimPrefix(url, "sqlite:")), "admin-token")
}

// TestTokenSettingWins checks that admin_token and admin_token_file come before the file beside the
// database, and that a start with either creates no file.
func TestTokenSettingWins(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	path := tokenBeside(url)
	const own = "a-token-of-the-operator"
	p := serve(t, testSettings(t, url, "admin_token: "+own))
	if _, err := os.Stat(path); err == nil {
		t.Error("a start with admin_token created a file")
	}
	p.stop(t)
	if err := os.WriteFile(path, []byte("the-token-of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	another := file(t, "token", own)
	for more, status := range map[string]map[string]int{
		"admin_token: " + own:          {own: 200, "the-token-of-the-file": 401},
		"admin_token_file: " + another: {own: 200, "the-token-of-the-file": 401},
		"{}":                           {own: 401, "the-token-of-the-file": 200},
	} {
		p := serve(t, testSettings(t, url, more))
		for token, want := range status {
			if got := operatorStatus(t, p, token); got != want {
				t.Errorf("%s: %s gets %d, not %d", more, token, got, want)
			}
		}
		p.stop(t)
	}
}

// TestLaterStartsMakeNoToken checks that a start creates no token for a database with accounts, nor
// for PostgreSQL, where each node would create its own.
func TestLaterStartsMakeNoToken(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		first := serve(t, testSettings(t, url, "{}"))
		first.stop(t)
		if strings.HasPrefix(url, "sqlite:") {
			if err := os.Remove(tokenBeside(url)); err != nil {
				t.Fatal(err)
			}
		} else if got := first.out.String(); !strings.Contains(got, "TOLLGATE_ADMIN_TOKEN=") {
			t.Errorf("the output does not explain how to set a token: %s", got)
		}
		p := serve(t, testSettings(t, url, "{}"))
		defer p.stop(t)
		if got := operatorStatus(t, p, "x"); got != http.StatusNotFound {
			t.Errorf("a later start answers %d", got)
		}
		if got := p.out.String(); got != "" {
			t.Errorf("a later start prints %q", got)
		}
	})
}

// TestUnusableTokenFile checks that a start rejects a file without a valid token, and names the
// file.
func TestUnusableTokenFile(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"empty": "", "spaces": "two words", "short": "short", "not ASCII": "ein-schlüssel-für-alle"} {
		url := "sqlite:" + filepath.Join(t.TempDir(), "tollgate.db")
		storetest.Open(t, url, store.Options{})
		if err := os.WriteFile(tokenBeside(url), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := testSettings(t, url, "{}")
		s.Listen = ":0" // a short token could be guessed at this address
		_, err := quietStart(t, s)
		if fault, ok := errors.AsType[*SettingError](err); !ok || !strings.HasPrefix(fault.Key, "admin_token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
