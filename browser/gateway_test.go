package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// adminToken is the operator token of the test gateways.
const adminToken = "browser-test-operator"

// past builds the program that writes two months of usage for the demo account.
var past = buildOnce("past", "./internal/console/consoletest/past")

// binary returns the path of the gateway. It builds the gateway once, unless
// TOLLGATE_TEST_BINARY names one.
func binary() (string, error) {
	if path := os.Getenv("TOLLGATE_TEST_BINARY"); path != "" {
		return path, nil
	}
	return buildGateway()
}

var buildGateway = buildOnce("tollgate", "./cmd/tollgate")

// buildOnce returns a function that builds a command of the repository on its first call.
func buildOnce(name, folder string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		path, err := filepath.Abs("../build/browser/" + name)
		if err != nil {
			return "", err
		}
		build := exec.Command("go", "build", "-trimpath", "-o", path, folder)
		build.Dir = ".."
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
		return path, nil
	})
}

// seedUsage writes two months of usage for the demo account.
func (g *gateway) seedUsage(t *testing.T) {
	t.Helper()
	program, err := past()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "sqlite:"+filepath.Join(g.folder, "data/tollgate.db")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// gateway is a running `tollgate serve` after its first start.
type gateway struct {
	url             string // http://HOST:PORT
	email, password string // of the demo account's user
	key             string // of the demo account
	token           string // of the operator
	folder          string // working directory
}

var printed = regexp.MustCompile(`(?s)Email: +(\S+)\s+Password: +(\S+).*?\n  (sk-\S+)`)

// start runs the binary in an empty folder until the test ends. settings are further variables,
// NAME=VALUE.
func start(t *testing.T, settings ...string) *gateway {
	t.Helper()
	folder := t.TempDir()
	url, output, _ := serve(t, folder, append([]string{"TOLLGATE_LISTEN=127.0.0.1:0", "TOLLGATE_ADMIN_TOKEN=" + adminToken,
		"TOLLGATE_PRIVATE_NETWORKS=127.0.0.0/8"}, settings...))
	m := printed.FindStringSubmatch(output)
	if m == nil {
		t.Fatalf("the first start prints no sign-in: %s", output)
	}
	return &gateway{url: url, email: m[1], password: m[2], key: m[3], token: adminToken, folder: folder}
}

// serve runs the binary in a folder until stop or the end of the test. It returns the address and what the
// program has printed to standard output.
func serve(t *testing.T, folder string, settings []string, flags ...string) (url, output string, stop func()) {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	serve := exec.Command(program, append([]string{"serve"}, flags...)...)
	serve.Dir = folder
	serve.Env = append(append(os.Environ(), "PROVIDER_KEY=sk-of-a-provider"), settings...) // for the lines of tests
	first, err := os.CreateTemp(t.TempDir(), "stdout")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	serve.Stdout = first
	stderr, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ready, drained := make(chan string, 1), make(chan struct{})
	logged := &bytes.Buffer{} // owned by the reader until drained is closed
	go func() {
		defer close(drained)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			logged.WriteString(lines.Text() + "\n")
			if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
				ready <- strings.TrimSpace(url)
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		if err := serve.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		giveUp := time.AfterFunc(time.Minute, func() { _ = serve.Process.Kill() })
		<-drained
		err := serve.Wait()
		giveUp.Stop()
		if err != nil || t.Failed() || strings.Contains(logged.String(), "level=ERROR") {
			t.Errorf("the gateway ended with %v:\n%s", err, logged)
		}
	})
	t.Cleanup(stop)
	select {
	case url = <-ready:
		text, err := os.ReadFile(first.Name()) // printed earlier
		if err != nil {
			t.Fatal(err)
		}
		return url, string(text), stop
	case <-drained:
		t.Fatalf("the gateway ended before it was ready:\n%s", logged)
	case <-time.After(time.Minute):
		t.Fatal("the gateway was not ready within a minute")
	}
	return "", "", nil
}

// request sends a request to the API and returns the status, the request's id and the answer.
func (g *gateway) request(t *testing.T, method, token, path string, body map[string]any) (status int, id string, out map[string]any) {
	t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, g.url+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if err := json.NewDecoder(answer.Body).Decode(&out); err != nil {
		t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
	}
	return answer.StatusCode, answer.Header.Get("x-request-id"), out
}

// call sends a body to the API, expects a status, and returns the answer.
func (g *gateway) call(t *testing.T, token, path string, want int, body map[string]any) map[string]any {
	t.Helper()
	status, _, out := g.request(t, http.MethodPost, token, path, body)
	if status != want {
		t.Fatalf("%s: %d, want %d: %v", path, status, want, out)
	}
	return out
}

// chat sends a question and returns the status and the request's id.
func (g *gateway) chat(t *testing.T, key, model string) (status int, id string) {
	t.Helper()
	status, id, _ = g.request(t, http.MethodPost, key, "/v1/chat/completions", hello(model))
	return status, id
}

// hello is the body of a chat request.
func hello(model string) map[string]any {
	return map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": "Hello!"}}}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, failure string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * stepTimeout); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal(failure)
		}
		<-time.After(50 * time.Millisecond)
	}
}
