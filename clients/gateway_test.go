package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// adminToken is the operator token of the test gateways.
const adminToken = "clients-test-operator"

// binary returns the path of the gateway. It builds the gateway once, unless
// TOLLGATE_TEST_BINARY names one.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("TOLLGATE_TEST_BINARY"); path != "" {
		return path, nil
	}
	path, err := filepath.Abs("../build/clients/tollgate")
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "./cmd/tollgate")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w\n%s", err, out)
	}
	return path, nil
})

// gateway is a running `tollgate serve` with its own database.
type gateway struct {
	url string // http://HOST:PORT
}

// start runs the binary with the tests' catalog.
func start(t *testing.T) *gateway {
	t.Helper()
	catalog, err := os.ReadFile("testdata/catalog.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, string(catalog))
}

// startOn runs the binary with a catalog on SQLite until the test ends. At the end, the gateway
// must stop on a signal, and its audit must pass.
func startOn(t *testing.T, document string) *gateway {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	catalog := filepath.Join(folder, "catalog.yaml")
	if err := os.WriteFile(catalog, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(),
		"FAKE_KEY=line-key", // key of lines to the test's own provider
		"TOLLGATE_DATABASE=sqlite:"+filepath.Join(folder, "tollgate.db"),
		"TOLLGATE_MEDIA=file:"+filepath.Join(folder, "media"),
		"TOLLGATE_LISTEN=127.0.0.1:0",
		"TOLLGATE_CATALOG="+catalog,
		"TOLLGATE_NO_DEMO=true",
		"TOLLGATE_ADMIN_TOKEN="+adminToken,
	)
	serve := exec.Command(program, "serve")
	serve.Dir, serve.Env = folder, env
	stderr, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	logged := &bytes.Buffer{} // owned by the reader until drained is closed
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			logged.WriteString(lines.Text() + "\n")
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				select {
				case ready <- strings.TrimSpace(url):
				default:
				}
			}
		}
	}()
	t.Cleanup(func() {
		if err := serve.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		giveUp := time.AfterFunc(time.Minute, func() { _ = serve.Process.Kill() })
		<-drained
		err := serve.Wait()
		giveUp.Stop()
		if err != nil {
			t.Errorf("the gateway ended with: %v", err)
		}
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", logged)
		}
		audit := exec.Command(program, "audit")
		audit.Dir, audit.Env = folder, env
		if out, err := audit.CombinedOutput(); err != nil {
			t.Errorf("the books do not agree: %v\n%s", err, out)
		}
	})
	select {
	case url := <-ready:
		return &gateway{url: url}
	case <-drained:
		t.Fatalf("the gateway ended before it was ready:\n%s", logged)
	case <-time.After(time.Minute):
		_ = serve.Process.Kill()
		<-drained
		t.Fatalf("the gateway was not ready within a minute:\n%s", logged)
	}
	return nil
}

// admin calls the operator API and returns the answer's members.
func (g *gateway) admin(t *testing.T, method, path string, body map[string]any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, g.url+"/admin/v1"+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(out, &answer); err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s: %s", method, path, res.Status, out)
	}
	return answer
}

// account creates an account with a balance in USD and returns its id.
func (g *gateway) account(t *testing.T, usd string) string {
	t.Helper()
	id, _ := g.admin(t, "POST", "/accounts", map[string]any{"name": t.Name(), "test": true})["id"].(string)
	if id == "" {
		t.Fatal("an account without an id")
	}
	if usd != "0" {
		g.admin(t, "POST", "/accounts/"+id+"/credits", map[string]any{"usd": json.Number(usd)})
	}
	return id
}

// key creates a key of an account with the given settings and returns its value.
func (g *gateway) key(t *testing.T, account string, settings map[string]any) string {
	t.Helper()
	if settings == nil {
		settings = map[string]any{}
	}
	key, _ := g.admin(t, "POST", "/accounts/"+account+"/keys", settings)["key"].(string)
	if key == "" {
		t.Fatal("a key without a value")
	}
	return key
}
