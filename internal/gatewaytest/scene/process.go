// Package scene owns the parts of tests of the whole product: processes of the binary on either
// database, accounts and keys, clients, and the operator API with balances, receipts, lines and
// jobs.
//
// Invariants: processes end with their test. A process that ends early fails its test and shows its
// output.
package scene

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/fakestudio"
	"tollgate/internal/money"
)

// AdminToken is the operator token of every process.
const AdminToken = "test-operator-token"

// EnvBinary is the variable with the path of the binary built by `make test`.
const EnvBinary = "TOLLGATE_TEST_BINARY"

// Binary returns the path of the binary. Without EnvBinary, it builds one for the test.
func Binary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv(EnvBinary); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "tollgate")
	out, err := exec.Command("go", "build", "-o", path, "tollgate/cmd/tollgate").CombinedOutput()
	if err != nil {
		t.Fatalf("build tollgate: %v\n%s", err, out)
	}
	return path
}

// Process is a running `tollgate serve`.
type Process struct {
	// URL is the base address.
	URL string

	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // from Wait; valid after done is closed

	output Buffer
}

// Start runs `tollgate serve` with settings (`database`, `node_lease` …) on a free port, without
// the demo account, and waits until it is ready.
func Start(t testing.TB, binary string, settings map[string]string) *Process {
	t.Helper()
	p := &Process{t: t, done: make(chan struct{}), cmd: exec.Command(binary, "serve")}
	p.cmd.Env = environment(settings)
	p.cmd.Dir = t.TempDir()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	ready := make(chan string, 1)
	go p.read(stderr, ready)
	select {
	case p.URL = <-ready:
	case <-p.done:
		t.Fatalf("tollgate ended before it was ready: %v\n%s", p.err, p.Output())
	case <-time.After(waitTimeout):
		p.Kill()
		t.Fatalf("tollgate was not ready after %v\n%s", waitTimeout, p.Output())
	}
	return p
}

// Attach returns a Process for a gateway that runs in the test's process. Only its URL and the
// methods of the operator API work.
func Attach(t testing.TB, url string) *Process { return &Process{URL: url, t: t} }

// environment returns the environment variables for settings. A name in capitals is used as it is,
// for the credentials of lines. The test's own TOLLGATE_ variables are removed. The gateway may
// always fetch the results of fakestudio.
func environment(settings map[string]string) []string {
	all := map[string]string{"listen": "127.0.0.1:0", "admin_token": AdminToken, "no_demo": "true"}
	maps.Copy(all, settings)
	all["private_networks"] = strings.Trim(all["private_networks"]+","+fakestudio.FilesHost+"/32", ",")
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TOLLGATE_") {
			env = append(env, v)
		}
	}
	for k, v := range all {
		if name := strings.ToUpper(k); name != k {
			k = "TOLLGATE_" + name
		}
		env = append(env, k+"="+v)
	}
	return env
}

// read stores the output and finds the ready line.
func (p *Process) read(stderr io.Reader, ready chan<- string) {
	defer func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fmt.Fprintln(&p.output, lines.Text())
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			select {
			case ready <- url:
			default:
			}
		}
	}
}

// Output returns the standard error so far.
func (p *Process) Output() string { return p.output.String() }

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process with SIGKILL and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // the process may have ended already
	<-p.done
}

// Stop ends the process with SIGTERM and returns its exit code.
func (p *Process) Stop() int {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Errorf("stop tollgate: %v", err)
	}
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// CheckStop ends the process as Stop does and checks its exit code.
func (p *Process) CheckStop(t testing.TB) {
	t.Helper()
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, p.Output())
	}
}

// CheckBooks runs the command audit with settings.
func CheckBooks(t testing.TB, binary string, settings map[string]string) {
	t.Helper()
	if out, diag, code := Run(t, binary, settings, "audit"); code != 0 {
		t.Errorf("audit: exit %d\n%s%s", code, out, diag)
	}
}

// Run runs a subcommand with settings and returns its output and exit code.
func Run(t testing.TB, binary string, settings map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = environment(settings)
	cmd.Dir = t.TempDir()
	var out, diag bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &diag
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("tollgate %s: %v", strings.Join(args, " "), err)
	}
	return out.String(), diag.String(), cmd.ProcessState.ExitCode()
}

// Admin calls the operator API and decodes the answer into v, unless v is nil. It fails the test if
// the status is 400 or more.
func (p *Process) Admin(method, path string, body, v any) {
	p.t.Helper()
	answer := p.adminBytes(method, path, body)
	if v != nil {
		if err := json.Unmarshal(answer, v); err != nil {
			p.t.Fatalf("%s %s: %v in %s", method, path, err, answer)
		}
	}
}

func (p *Process) adminBytes(method, path string, body any) []byte {
	p.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	res, err := Do(context.Background(), http.DefaultClient, method, p.URL+"/admin/v1"+path, string(raw),
		"Authorization", "Bearer "+AdminToken, "Content-Type", "application/json")
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	if res.StatusCode >= 400 {
		p.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, answer)
	}
	return answer
}

// list reads all pages of a list of the operator API. path must have a query.
func list[T any](p *Process, path string, id func(T) string) (all []T) {
	p.t.Helper()
	for after := ""; ; {
		var page struct {
			Data    []T  `json:"data"`
			HasMore bool `json:"has_more"`
		}
		p.Admin("GET", path+"&after="+after, nil, &page)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		after = id(all[len(all)-1])
	}
}

// SetCatalog replaces the catalog.
func (p *Process) SetCatalog(models, lines []map[string]any) {
	p.t.Helper()
	p.Admin("PUT", "/catalog", map[string]any{"models": models, "lines": lines}, nil)
}

// Audit checks the books.
func (p *Process) Audit(t testing.TB) {
	t.Helper()
	var report struct {
		OK          bool            `json:"ok"`
		Differences json.RawMessage `json:"differences"`
	}
	p.Admin("GET", "/audit", nil, &report)
	if !report.OK {
		t.Errorf("audit: %s", report.Differences)
	}
}

// Funds is the money of an account.
type Funds struct {
	Balance money.Amount `json:"balance_usd"`
	Held    money.Amount `json:"held_usd"`
}

// FundsOf returns the money of an account.
func (p *Process) FundsOf(account string) (f Funds) {
	p.t.Helper()
	p.Admin("GET", "/accounts/"+account, nil, &f)
	return f
}

// Account opens an account with a credit and a key with limits. It returns the account's id and the
// key.
func (p *Process) Account(usd float64, limits map[string]any) (account, key string) {
	p.t.Helper()
	var acct struct {
		ID string `json:"id"`
	}
	p.Admin("POST", "/accounts", map[string]any{"name": "test", "test": true}, &acct)
	if usd != 0 {
		p.Admin("POST", "/accounts/"+acct.ID+"/credits", map[string]any{"usd": usd}, nil)
	}
	if limits == nil {
		limits = map[string]any{}
	}
	var created struct {
		Key string `json:"key"`
	}
	p.Admin("POST", "/accounts/"+acct.ID+"/keys", limits, &created)
	if acct.ID == "" || created.Key == "" {
		p.t.Fatalf("the operator API created account %q and key %q", acct.ID, created.Key)
	}
	return acct.ID, created.Key
}
