package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/store/storetest"
)

// asCommand in the environment makes this test binary behave as tollgate.
const asCommand = "TOLLGATE_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		for _, v := range os.Environ() {
			if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "TOLLGATE_TEST_") {
				_ = os.Unsetenv(name)
			}
		}
		main()
	}
	os.Exit(m.Run())
}

// command prepares a process of the binary in dir.
func command(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, self, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), asCommand+"=1", "TOLLGATE_LISTEN=127.0.0.1:0",
		"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "GORACE=atexit_sleep_ms=0") // the race detector sleeps a second at exit
	return c
}

// result is the outcome of a command.
type result struct {
	code        int
	out, errors string
}

// newProcess returns the environment for a command in this process. The command's files are in dir
// by default, and stdin is its standard input.
func newProcess(dir, stdin string) *process {
	return &process{stdin: strings.NewReader(stdin), now: time.Now, environ: map[string]string{"TOLLGATE_LISTEN": "127.0.0.1:0",
		"TOLLGATE_DATABASE": "sqlite:" + filepath.Join(dir, "data/tollgate.db"), "TOLLGATE_MEDIA": "file:" + filepath.Join(dir, "data/media")}}
}

// tollgate runs a command in this process. The command may neither serve nor print help,
// because help exits.
func tollgate(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return tollgateWithInput(t, dir, "", args...)
}

// tollgateWithInput is tollgate with a standard input.
func tollgateWithInput(t *testing.T, dir, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	p := newProcess(dir, stdin)
	p.stdout, p.stderr = &out, &errs
	return result{p.run(args), out.String(), errs.String()}
}

// execute runs a command as a process in dir.
func execute(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return runToEnd(t, command(t, dir, args...))
}

// outcome runs a process to its end.
func runToEnd(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); c.ProcessState == nil {
		t.Fatalf("%v: %v", c.Args, err)
	}
	return result{c.ProcessState.ExitCode(), out.String(), errs.String()}
}

// must is tollgate for a command without errors. It returns the JSON object of the output.
func must(t *testing.T, dir string, args ...string) map[string]any {
	t.Helper()
	got := tollgate(t, dir, args...)
	if got.code != 0 || got.errors != "" {
		t.Fatalf("%v ended with %d and the errors %s, want 0 and none", args, got.code, got.errors)
	}
	var body map[string]any
	if err := json.Unmarshal([]byte(got.out), &body); err != nil {
		t.Fatalf("%v printed no JSON object: %v: %s", args, err, got.out)
	}
	return body
}

// sandbox writes a catalog file with one sandbox model.
func writeSandboxCatalog(t *testing.T, dir, options string) string {
	t.Helper()
	doc := `
models:
  - {id: swift-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: main, provider: sandbox, models: {swift-1: swift}, options: ` + options + `}
`
	return writeFile(t, dir, "catalog.yaml", doc)
}

// applySandboxCatalog makes the catalog of sandbox current.
func applySandboxCatalog(t *testing.T, dir, options string, args ...string) {
	t.Helper()
	if got := tollgate(t, dir, append([]string{"apply", writeSandboxCatalog(t, dir, options)}, args...)...); got.code != 0 {
		t.Fatalf("apply ended with %+v, want exit 0", got)
	}
}

// writeFile writes a file in dir and returns its path.
func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const question = `{"model":"swift-1","messages":[{"role":"user","content":"Hello"}]}`

// TestAccountsKeysAndChat checks that changes by commands take effect in a running service,
// and that the audit finds no difference.
func TestAccountsKeysAndChat(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		dir := t.TempDir()
		db := "--database=" + url
		if got := tollgate(t, dir, "apply", writeSandboxCatalog(t, dir, "{}"), db); got.code != 0 ||
			!strings.Contains(got.out, "revision 1 is current now") {
			t.Fatalf("apply ended with %+v, want revision 1", got)
		}
		account := must(t, dir, "account", "create", "--name", "acme", "--overdraft-floor-usd", "-0.5", db)
		id, _ := account["id"].(string)
		if account["overdraft_floor_usd"] != -0.5 || !strings.HasPrefix(id, "acct_") {
			t.Fatalf("created the account %v, want the floor -0.5", account)
		}
		s := serve(t, dir, db)
		if got := must(t, dir, "account", "credit", id, "5", "--note", "prepaid", db); got["balance_usd"] != 5.0 {
			t.Errorf("crediting 5 USD printed %v, want the balance 5", got)
		}
		if got := must(t, dir, "account", "credit", id, "-1.5", db); got["balance_usd"] != 3.5 {
			t.Errorf("crediting -1.5 USD printed %v, want the balance 3.5", got)
		}
		key := must(t, dir, "key", "create", id, "--name", "first", "--rpm", "7", "--daily-budget-usd", "0.5",
			"--allowed-models", "swift-1,other", "--allowed-ips", "127.0.0.0/8", db)
		secret, _ := key["key"].(string)
		keyID, _ := key["id"].(string)
		if key["rpm"] != 7.0 || key["daily_budget_usd"] != 0.5 || key["total_limit_usd"] != nil {
			t.Errorf("created the key %v, want rpm 7 and the daily budget 0.5", key)
		}
		if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
			t.Fatalf("the chat request got %d %s, want 200", status, body)
		}
		changed := must(t, dir, "key", "change", keyID, "--rpm", "none", "--allowed-models", "none", "--total-limit-usd", "2", db)
		if changed["rpm"] != nil || changed["allowed_models"] != nil || changed["total_limit_usd"] != 2.0 || changed["daily_budget_usd"] != 0.5 {
			t.Errorf("changed the key to %v, want only the total limit 2 and the daily budget 0.5", changed)
		}
		must(t, dir, "key", "disable", keyID, db)
		if status, _ := s.request("POST", "/v1/chat/completions", secret, question); status != 401 {
			t.Errorf("a disabled key got %d, want 401", status)
		}
		must(t, dir, "key", "enable", keyID, db)
		must(t, dir, "account", "disable", id, db)
		if status, _ := s.request("GET", "/v1/usage", secret, ""); status != 401 {
			t.Errorf("a key of a disabled account got %d, want 401", status)
		}
		must(t, dir, "account", "enable", id, db)
		if status, body := s.request("GET", "/v1/usage", secret, ""); status != 200 || !strings.Contains(body, `"billed_requests":1`) {
			t.Errorf("GET /v1/usage answered %d %s, want one billed request", status, body)
		}
		if list := must(t, dir, "key", "list", id, db); strings.Contains(tollgate(t, dir, "key", "list", id, db).out, secret) ||
			list["object"] != "list" {
			t.Errorf("the list of keys is %v, want a list without the secret", list)
		}
		if got := must(t, dir, "account", "entries", id, "--limit", "1", db); got["has_more"] != true {
			t.Errorf("the entries are %v, want a page with more", got)
		}
		must(t, dir, "audit", db)
		s.stop()
		must(t, dir, "audit", db)
		if got := tollgate(t, dir, "key", "delete", keyID, db); got.code != 0 {
			t.Errorf("key delete ended with %+v, want exit 0", got)
		}
	})
}

// TestExitCodes checks exit codes. A failed command must print only one line with the cause, on
// standard error.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	badCatalog := writeFile(t, dir, "bad.yaml", "models:\n  - {id: a, kind: chat}\n  - {id: b, kind: what}\n")
	writeFile(t, dir, "one.yaml", "models: []\nlines: []\nmore: 1\n")
	writeFile(t, dir, "tollgate.yaml", "max_body: 1MiB\nlisten_on: x\n")
	applySandboxCatalog(t, dir, "{}")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"account --json", 2, "expected one of"},
		{"account list --json --csv", 2, "--json and --csv"},
		{"help frobnicate", 2, "frobnicate"},
		{"key list", 2, "--hint"},
		{"completion ksh", 2, "bash"},
		{"codes create 5 --expires yesterday", 2, "--expires"},
		{"request list --since -1h", 2, "--since"},
		{"request show req_x", 1, "req_x"},
		{"usage --group-by colour", 2, "--group-by"},
		{"job cancel job_x", 2, "admin_token: is not set"},
		{"job cancel job_x --admin-token x --listen 127.0.0.1:1", 2, "listen: no service answers at 127.0.0.1:1; set --listen to"},
		{"job cancel job_x --admin-token x --listen 127.0.0.1:0", 2, "listen: must name the port"},
		{"frobnicate", 2, "unknown command frobnicate: see `tollgate --help`"},
		{"key update", 2, "unknown command update: see `tollgate key --help`"},
		{"account credit acct_x 0", 2, "usd: The amount (usd) must not be 0."},
		{"serve --frobnicate", 2, "--frobnicate"},
		{"serve --listen nowhere", 2, "listen (--listen): must be HOST:PORT"},
		{"serve --listen 203.0.113.1:80", 2, "listen: "},
		{"serve --database mysql://x", 2, "database (--database): must be sqlite:PATH"},
		{"serve --config tollgate.yaml", 2, "listen_on (tollgate.yaml:2:1): unknown setting"},
		{"serve --config gone.yaml", 2, "config (gone.yaml): no such file"},
		{"serve --database sqlite:new.db --catalog gone.yaml", 2, "catalog: "},
		{"account list --database sqlite:gone.db", 2, "database: sqlite:gone.db does not exist yet"},
		{"audit --database sqlite:gone.db", 2, "database: "},
		{"catalog --database sqlite:gone.db", 2, "database: "},
		{"import frobnicate x.db", 2, "one-api"},
		{"import one-api gone.db", 2, "import: open the source: open gone.db"},
		{"import one-api", 2, "tollgate: name the database of one-api"},
		{"import litellm", 2, "config file"},
		{"import", 2, "expected \"<program>\": see `tollgate import --help`"},
		{"request show", 2, "expected \"<request>\": see `tollgate request show --help`"},
		{"import one-api gone.db --unlimited-usd much", 2, "--unlimited-usd"},
		{"apply", 2, "<file>"},
		{"apply gone.yaml", 2, "gone.yaml"},
		{"apply gone.yaml --note new", 2, "need --at"},
		{"apply gone.yaml --database sqlite:gone.db", 2, "gone.yaml"},
		{"apply one.yaml", 2, "tollgate: file: one.yaml: more: is not a known key"},
		{"account create", 2, "--name"},
		{"account credit acct_x five", 2, "usd"},
		{"account credit acct_x 1.0000000001", 2, "usd"},
		{"key create acct_x --rpm many", 2, "--rpm"},
		{"key create acct_x --daily-budget-usd much", 2, "--daily-budget-usd"},
		{"account get acct_x", 1, "acct_x"},
		{"account credit acct_x 5", 1, "acct_x"},
		{"key create acct_x", 1, "acct_x"},
		{"key disable key_x", 1, "key_x"},
		{"account create --name a --overdraft-floor-usd 5", 2, "--overdraft-floor-usd"},
		{"account list --limit 0", 2, "--limit"},
		{"account change acct_x --email", 2, "--email: its value is missing"},
		{"account change acct_x --email --json", 2, "--email: its value is missing before --json"},
		{"account create --name --email=a@example.com", 2, "--name: its value is missing before --email. If --email is the value, write --name"},
		{"key create acct_x --allowed-models", 2, "--allowed-models: its value is missing"},
		{"key create acct_x --allowed-ips --json", 2, "--allowed-ips: its value is missing before --json"},
		{"account list --database", 2, "--database: its value is missing"},
		{"key change key_x --name -a- --allowed-models=--b", 1, "key_x"},
		{"catalog --revision=-1", 2, "--revision"},
		{"catalog --revision 99", 1, "revision 99"},
		{"line drain nope", 1, "tollgate: there is no line \"nope\" in the current catalog: see `tollgate line list` (not_found)\n"},
		{"line resume nope", 1, "`tollgate line list`"},
		{"line drain a/b", 2, "\"a/b\" is not an ID"},
		{"account get .", 2, "\".\" is not an ID"},
		{"key change key/x --name y", 2, "\"key/x\" is not an ID"},
		{"user delete ..", 2, "\"..\" is not an ID"},
		{"request show a/../b", 2, "\"a/../b\" is not an ID"},
		{"codes void code_x", 1, "code_x"},
		{"user get user_x", 1, "user_x"},
		{"job show job_x", 1, "job_x"},
		{"version", 0, ""},
		{"catalog", 0, ""},
		{"catalog --history", 0, ""},
		{"audit", 0, ""},
		{"account list", 0, ""},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := tollgate(t, dir, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(got.errors, c.want) {
				t.Errorf("exit %d, %q; want %d and %q", got.code, got.errors, c.code, c.want)
			}
			if want := min(c.code, 1); strings.Count(got.errors, "\n") != want {
				t.Errorf("standard error has %d lines, want %d: %q", strings.Count(got.errors, "\n"), want, got.errors)
			}
			if (got.out == "") != (c.code != 0) {
				t.Errorf("standard output is %q, want output only with exit code 0", got.out)
			}
		})
	}
	if _, err := os.Stat("gone.db"); err == nil {
		t.Error("a failed command created the database gone.db")
	}
	got := tollgate(t, dir, "apply", badCatalog)
	if got.code != 2 || !strings.Contains(got.errors, "models[0]") || !strings.Contains(got.errors, "models[1].kind") {
		t.Errorf("apply of a bad catalog ended with %+v, want exit 2 and both errors", got)
	}
	if got := tollgate(t, dir, "catalog", "--history"); strings.Contains(got.out, "revision 2") {
		t.Errorf("a bad catalog created a revision: %s", got.out)
	}
}

// TestMisspeltVariable checks that an unknown TOLLGATE_ variable is an error that suggests
// the right name.
func TestMisspeltVariable(t *testing.T) {
	t.Parallel()
	c := command(t, t.TempDir(), "account", "list")
	c.Env = append(c.Env, "TOLLGATE_PUBLC_URL=https://example.com")
	output, _ := c.CombinedOutput()
	want := "tollgate: TOLLGATE_PUBLC_URL: unknown; did you mean TOLLGATE_PUBLIC_URL?\n"
	if code := c.ProcessState.ExitCode(); code != 2 || string(output) != want {
		t.Errorf("got exit %d and %s, want 2 and %s", code, output, want)
	}
}

// TestApply checks the output of apply, also for a dry run and standard input.
func TestApply(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := writeSandboxCatalog(t, dir, "{}")
	first := tollgate(t, dir, "apply", file)
	if first.code != 0 || !strings.Contains(first.out, "swift-1") || !strings.Contains(first.out, "revision 1 is current now") {
		t.Errorf("the first apply ended with %+v, want revision 1", first)
	}
	if got := tollgate(t, dir, "apply", file); got.code != 0 || got.out != "no changes: revision 1 stays current\n" {
		t.Errorf("applying the same catalog ended with %+v, want no changes", got)
	}
	writeSandboxCatalog(t, dir, "{delay: 5ms}")
	scheduled := tollgate(t, dir, "apply", file, "--at", "24h", "--note", "slower")
	if !strings.Contains(scheduled.out, "scheduled for") || tollgate(t, dir, "catalog", "--scheduled").out != scheduled.out {
		t.Errorf("apply --at ended with %+v, want the change, also in the list", scheduled)
	}
	if got := tollgate(t, dir, "apply", file, "--at", "2020-01-01"); got.code != 1 || !strings.Contains(got.errors, "in the future") {
		t.Errorf("apply at a past time ended with %+v, want exit 1", got)
	}
	if got := tollgate(t, dir, "apply", file, "--dry-run"); got.code != 0 || !strings.Contains(got.out, "5ms") ||
		!strings.Contains(got.out, "revision 1 stays current") {
		t.Errorf("the dry run ended with %+v, want the change and revision 1", got)
	}
	if got := tollgate(t, dir, "catalog"); strings.Contains(got.out, "5ms") {
		t.Errorf("the dry run changed the catalog to %s", got.out)
	}
	if got := tollgate(t, dir, "apply", file); !strings.Contains(got.out, "revision 2 is current now") {
		t.Errorf("the second apply ended with %+v, want revision 2", got)
	}
	output := writeFile(t, dir, "again.yaml", tollgate(t, dir, "catalog").out)
	if got := tollgate(t, dir, "apply", output); got.out != "no changes: revision 2 stays current\n" {
		t.Errorf("applying the output of `catalog` ended with %+v, want no changes", got)
	}
	piped := tollgateWithInput(t, dir, strings.ReplaceAll(tollgate(t, dir, "catalog").out, "5ms", "7ms"), "apply", "-")
	if piped.code != 0 || !strings.Contains(piped.out, "revision 3 is current now") {
		t.Errorf("apply from standard input ended with %+v, want revision 3", piped)
	}
	if got := tollgate(t, dir, "catalog", "--revision", "1"); got.code != 0 || strings.Contains(got.out, "5ms") {
		t.Errorf("catalog --revision 1 ended with %+v, want the first catalog", got)
	}
}

// TestAuditFindsDifferences checks that audit fails and prints the balance if the balance was
// changed without an entry.
func TestAuditFindsDifferences(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "books.db")
	applySandboxCatalog(t, dir, "{}", "--database", url)
	owner := must(t, dir, "account", "create", "--name", "acme", "--database", url)
	id, _ := owner["id"].(string)
	must(t, dir, "account", "credit", id, "5", "--database", url)
	inDatabase(t, url, `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = $1`, id)
	got := tollgate(t, dir, "audit", "--database", url)
	if got.code != 1 || !strings.Contains(got.out, `"ok": false`) || !strings.Contains(got.out, "5.000000001") || got.errors == "" {
		t.Errorf("audit ended with %+v, want exit 1 and the balance 5.000000001", got)
	}
}

// TestFirstStart checks the first start's output, the requests in this output after a
// restart, and the permissions of the created files.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	second := execute(t, dir, "serve", "--listen", "127.0.0.1:0")
	if second.code != 2 || !strings.Contains(second.errors, "another tollgate process serves") || strings.Count(second.errors, "\n") != 1 {
		t.Errorf("a second service ended with %+v, want exit 2 and one line", second)
	}
	s.stop()
	output := s.out.String()
	secret := regexp.MustCompile(`sk-[A-Za-z0-9_-]+`).FindString(output)
	body := regexp.MustCompile(`-d '(.*)'`).FindAllStringSubmatch(output, -1)
	if secret == "" || len(body) != 6 {
		t.Fatalf("the output is %s, want a key and 6 requests", output)
	}
	if restart := "\n  " + command(t, dir).Path + " serve --listen=127.0.0.1:0\n"; !strings.Contains(output, restart) {
		t.Errorf("the output is %s, want it to contain %q", output, restart)
	}
	token, err := os.ReadFile(filepath.Join(dir, "data/admin-token"))
	if err != nil || !strings.Contains(output, "\n  "+strings.TrimSpace(string(token))+"\n") {
		t.Errorf("the output lacks the operator's token: %v, %s", err, output)
	}
	s = serve(t, dir)
	for i, c := range []struct {
		path   string
		status int
		answer string
	}{
		{"/v1/chat/completions", 200, `"finish_reason":"stop"`},
		{"/v1/chat/completions", 200, `data: \[DONE\]\n\n$`},
		{"/v1/responses", 200, `"status":"completed"`},
		{"/native/v1/messages", 200, `"stop_reason":"end_turn"`},
		{"/v1/images/generations", 202, `"status":"queued"`},
		{"/v1/videos/generations", 202, `"status":"queued"`},
	} {
		if status, answer := s.request("POST", c.path, secret, body[i][1]); status != c.status ||
			!regexp.MustCompile(c.answer).MatchString(answer) {
			t.Errorf("POST %s answered %d %s, want %d and %s", c.path, status, answer, c.status, c.answer)
		}
	}
	if status, answer := s.request("GET", "/v1/usage", secret, ""); status != 200 || !strings.Contains(answer, `"billed_requests":4`) {
		t.Errorf("GET /v1/usage answered %d %s, want 4 billed requests", status, answer)
	}
	for name, mode := range map[string]os.FileMode{"data": 0o700, "data/tollgate.db": 0o600, "data/admin-token": 0o600,
		"data/secret-key": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has the permissions %v (%v), want %v", name, info.Mode(), err, mode)
		}
	}
	s.stop()
	if s.out.Len() != 0 {
		t.Errorf("a later start prints %q, want nothing", s.out)
	}
}

// TestStopLetsStreamsFinish checks that a stopping service completes a stream, and exits.
func TestStopLetsStreamsFinish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, secret := slowService(t, dir, "{tokens: 20, chunk_delay: 20ms}")
	answer, lines := s.stream(secret)
	defer answer.Body.Close()
	s.signal(syscall.SIGTERM)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("the stream was cut: %v, %s", err, rest)
	}
	if code, log := s.wait(); code != 0 {
		t.Errorf("the service ended with %d, want 0: %s", code, log)
	}
	if _, err := http.Get(s.base + "/healthz"); err == nil {
		t.Error("a connection is accepted after the service ended")
	}
	must(t, dir, "audit")
}

// TestStopCutsAfterGrace checks that a stream is cut after the grace, and that the audit finds
// no difference.
func TestStopCutsAfterGrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, secret := slowService(t, dir, "{tokens: 1000, chunk_delay: 1s}", "--shutdown-grace", "50ms")
	answer, lines := s.stream(secret)
	defer answer.Body.Close()
	s.signal(syscall.SIGINT)
	if rest, _ := io.ReadAll(lines); strings.Contains(string(rest), "[DONE]") {
		t.Errorf("the cut stream ends with [DONE]: %s", rest)
	}
	if code, log := s.wait(); code != 0 || !strings.Contains(log, "were cut") {
		t.Errorf("the service ended with %d, want 0 and a log of the cut stream: %s", code, log)
	}
	must(t, dir, "audit")
}

// TestHandleSignals checks that a second signal is ignored within signalInterval, and calls
// onSecond after that.
func TestHandleSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals, stopping := make(chan os.Signal), make(chan struct{})
		var calls []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			handleSignals(signals, stopping, func() { calls = append(calls, "stop") }, func() { calls = append(calls, "at once") })
		}()
		signals <- syscall.SIGTERM
		time.Sleep(signalInterval - time.Millisecond)
		signals <- syscall.SIGTERM
		synctest.Wait()
		if !slices.Equal(calls, []string{"stop"}) {
			t.Errorf("after the second signal within signalInterval the calls are %v, want only stop", calls)
		}
		time.Sleep(time.Millisecond)
		signals <- syscall.SIGINT
		<-done
		if !slices.Equal(calls, []string{"stop", "at once"}) {
			t.Errorf("after the last signal the calls are %v, want stop and at once", calls)
		}
	})
}

// TestSecondSignalEndsAtOnce checks that a second signal ends the service without the grace,
// and that the next start repairs the holds.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, secret := slowService(t, dir, "{tokens: 1000, chunk_delay: 1s}", "--shutdown-grace", "1h")
	answer, lines := s.stream(secret)
	defer answer.Body.Close()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for s.cmd.Process.Signal(syscall.SIGTERM) == nil {
		<-ticker.C
		if len(s.log) > 0 {
			break
		}
	}
	if code, log := s.wait(); code != 1 || !strings.Contains(log, "stopping at once") {
		t.Errorf("the service ended with %d, want 1 and stopping at once: %s", code, log)
	}
	_, _ = io.ReadAll(lines)
	s = serve(t, dir)
	s.stop()
	must(t, dir, "audit")
}

// slowService starts a service with a sandbox line with options, and returns the service and the
// secret of a key with credit.
func slowService(t *testing.T, dir, options string, args ...string) (*service, string) {
	t.Helper()
	applySandboxCatalog(t, dir, options)
	id, _ := must(t, dir, "account", "create", "--name", "acme")["id"].(string)
	must(t, dir, "account", "credit", id, "5")
	secret, _ := must(t, dir, "key", "create", id)["key"].(string)
	return serve(t, dir, args...), secret
}

// stream starts a streamed answer and reads its first line.
func (s *service) stream(secret string) (*http.Response, *bufio.Reader) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "POST", s.base+"/v1/chat/completions",
		strings.NewReader(strings.Replace(question, "{", `{"stream":true,`, 1)))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewReader(answer.Body)
	if line, err := lines.ReadString('\n'); err != nil || answer.StatusCode != 200 {
		s.t.Fatalf("the stream began with %d, %v and %s, want 200", answer.StatusCode, err, line)
	}
	return answer, lines
}
