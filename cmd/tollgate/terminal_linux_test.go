package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"tollgate/internal/gatewaytest/scene"
)

// openTerminal opens a pseudoterminal. ptm is the user's side, and tty the command's side.
func openTerminal(t *testing.T, columns uint16) (ptm, tty *os.File) {
	t.Helper()
	ptm, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(ptm.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetUint32(int(ptm.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return ptm, tty
}

// onTerminal runs a command in this process with a terminal as standard output, and returns
// the lines on the terminal.
func onTerminal(t *testing.T, dir string, columns uint16, args ...string) []string {
	t.Helper()
	var errs bytes.Buffer
	p := newProcess(dir, "")
	p.stderr = &errs
	code, text := runOnTerminal(t, columns, "", func(tty *os.File) int {
		p.stdout = tty
		return p.run(args)
	})
	if code != 0 {
		t.Fatalf("%v ended with %d, want 0: %s%s", args, code, text, &errs)
	}
	return strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

// runWithAnswer runs a command in this process with a terminal as standard input and standard
// error, types answer, and returns the exit code and the text on the terminal.
func runWithAnswer(t *testing.T, dir, answer string, args ...string) (int, string) {
	t.Helper()
	p := newProcess(dir, "")
	p.stdout = io.Discard
	return runOnTerminal(t, 120, answer, func(tty *os.File) int {
		p.stdin, p.stderr = tty, tty
		return p.run(args)
	})
}

// runOnTerminal calls run with the command's side of a terminal, and returns its exit code
// and the text on the terminal.
func runOnTerminal(t *testing.T, columns uint16, input string, run func(tty *os.File) int) (int, string) {
	t.Helper()
	ptm, tty := openTerminal(t, columns)
	defer ptm.Close()
	if _, err := ptm.WriteString(input); err != nil {
		t.Fatal(err)
	}
	text := make(chan string)
	go func() {
		out, _ := io.ReadAll(ptm) // fails when tty is closed
		text <- string(out)
	}()
	code := run(tty)
	tty.Close()
	return code, <-text
}

// TestLargeCredits checks that a large credit needs a confirmation, and that amounts with an
// exponent are rejected.
func TestLargeCredits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	applySandboxCatalog(t, dir, "{}")
	id, _ := must(t, dir, "account", "create", "--name", "a")["id"].(string)
	for _, amount := range []string{"1e3", "1E3", "5e-1", "0.1e1", "-1e3"} {
		if got := tollgate(t, dir, "account", "credit", id, amount); got.code != 2 || !strings.Contains(got.errors, "decimal number") {
			t.Errorf("crediting %s ended with %+v, want exit 2", amount, got)
		}
	}
	for _, c := range []struct {
		answer, args string
		code         int
		question     string // empty if the command must not ask
	}{
		{"n", "5000", 1, "Credit 5000 USD to account " + id + "?"},
		{"", "-1000.5", 1, "Credit -1000.5 USD"},
		{"y", "5000", 0, "Credit 5000 USD"},
		{"", "2000 --yes", 0, ""},
		{"", "1000", 0, ""},
	} {
		code, text := runWithAnswer(t, dir, c.answer+"\n", append([]string{"account", "credit", id}, strings.Fields(c.args)...)...)
		if code != c.code || strings.Contains(text, "?") != (c.question != "") || !strings.Contains(text, c.question) {
			t.Errorf("crediting %s with the answer %q ended with %d, want %d and the question %q: %s", c.args, c.answer, code, c.code,
				c.question, text)
		}
	}
	if got := must(t, dir, "account", "get", id); got["balance_usd"] != 8000.0 {
		t.Errorf("the balance is %v, want 8000", got["balance_usd"])
	}
}

// TestTablesOnTerminal checks that tables fit the terminal and replace unprintable characters, and
// that --json and --csv work there.
func TestTablesOnTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	applySandboxCatalog(t, dir, "{}")
	id, _ := must(t, dir, "account", "create", "--name", "Söhne", "--email", "a@example.com")["id"].(string)
	// Earlier versions accepted any name.
	inDatabase(t, "sqlite:"+filepath.Join(dir, "data", "tollgate.db"), `UPDATE account SET name = $1 WHERE id = $2`, "Söhne \u202e", id)
	must(t, dir, "account", "create", "--name", "b")
	must(t, dir, "account", "credit", id, "12.5")
	must(t, dir, "account", "credit", id, "0.0125", "--note", strings.Repeat("long ", 30))
	narrow := onTerminal(t, dir, 60, "account", "list")
	if fields := strings.Fields(narrow[0]); strings.Join(fields, " ") != "ID NAME BALANCE USD" || len(narrow) != 5 {
		t.Errorf("the table of 60 columns is %q, want three columns", narrow)
	}
	if !strings.Contains(narrow[1], "Söhne ·") || !strings.HasSuffix(narrow[1], "12.5125") || !strings.HasSuffix(narrow[2], " 0.00") {
		t.Errorf("the table is %q, want aligned balances and no unprintable character", narrow)
	}
	if wide := onTerminal(t, dir, 200, "account", "list"); len(wide) != 3 || !strings.Contains(wide[0], "EMAIL") {
		t.Errorf("the table of 200 columns is %q, want 3 lines with EMAIL", wide)
	}
	for _, args := range [][]string{{"account", "entries", id}, {"account", "list", "--limit", "1"}, {"account", "get", id}, {"usage"}} {
		for _, columns := range []uint16{80, 120} {
			for _, line := range onTerminal(t, dir, columns, args...) {
				if n := utf8.RuneCountInString(line); n > int(columns) {
					t.Errorf("%v printed %d characters on %d columns: %q", args, n, columns, line)
				}
			}
		}
	}
	details := strings.Join(onTerminal(t, dir, 80, "account", "get", id), "\n")
	if !strings.Contains(details, "\nbalance usd          12.5125\n") || !strings.Contains(details, "\ndisabled             no\n") {
		t.Errorf("the details are %s, want aligned values", details)
	}
	if got := onTerminal(t, dir, 80, "line", "list"); !strings.HasPrefix(got[0], "No node has reported") {
		t.Errorf("the empty list of lines is %q, want its own text", got)
	}
	if got := onTerminal(t, dir, 80, "account", "list", "--json"); got[0] != "{" {
		t.Errorf("--json printed %q, want JSON", got)
	}
	if got := onTerminal(t, dir, 80, "account", "list", "--csv"); !strings.HasPrefix(got[0], "id,name,email,") {
		t.Errorf("--csv printed %q, want CSV", got)
	}
}

// TestKeyWarnings checks that warnings are in the JSON, and on standard error beside
// a table or CSV.
func TestKeyWarnings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	applySandboxCatalog(t, dir, "{}")
	id, _ := must(t, dir, "account", "create", "--name", "a")["id"].(string)
	const models, about = "--allowed-models=sandbox-caht", "allowed_models: the catalog has no model sandbox-caht, "
	created := must(t, dir, "key", "create", id, models)
	if w, _ := created["warnings"].([]any); len(w) != 1 || !strings.HasPrefix(w[0].(string), about) {
		t.Errorf("the JSON is %v, want one warning", created)
	}
	csv := tollgate(t, dir, "key", "create", id, models, "--csv")
	if csv.code != 0 || !strings.HasPrefix(csv.errors, "warning: "+about) || strings.Count(csv.errors, "\n") != 1 ||
		!strings.Contains(csv.out, "sandbox-caht") || strings.Contains(csv.out, "warning") || strings.Contains(csv.out, about) {
		t.Errorf("--csv ended with %+v, want the warning only on standard error", csv)
	}
	key, _ := created["id"].(string)
	table := strings.Join(onTerminal(t, dir, 120, "key", "change", key, models), "\n")
	if !strings.Contains(table, "sandbox-caht") || strings.Contains(table, "warning") {
		t.Errorf("the table is %s, want no warning in it", table)
	}
}

// dialogue is a process with a terminal as standard input and standard error.
type dialogue struct {
	t        *testing.T
	ptm, tty *os.File
	command  *exec.Cmd
	text     strings.Builder // everything shown by the terminal
}

// startDialogue starts a command on a terminal.
func startDialogue(t *testing.T, dir string, args ...string) *dialogue {
	t.Helper()
	ptm, tty := openTerminal(t, 80)
	t.Cleanup(func() {
		_ = ptm.Close()
		_ = tty.Close()
	})
	d := &dialogue{t: t, ptm: ptm, tty: tty, command: command(t, dir, args...)}
	d.command.Stdin, d.command.Stderr = tty, tty
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// waitFor reads the terminal until it shows a text.
func (d *dialogue) waitFor(text string) {
	d.t.Helper()
	buf := make([]byte, 256)
	for !strings.Contains(d.text.String(), text) {
		n, err := d.ptm.Read(buf)
		d.text.Write(buf[:n])
		if err != nil {
			d.t.Fatalf("the terminal ended with %v before %q; it has shown %q", err, text, d.text.String())
		}
	}
}

// echoes reports whether the terminal shows typed characters.
func (d *dialogue) echoes() bool {
	state, err := unix.IoctlGetTermios(int(d.tty.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO != 0
}

// TestPasswordPrompt checks that a typed password is not shown and must be typed twice, and that a
// signal restores the terminal.
func TestPasswordPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	applySandboxCatalog(t, dir, "{}")
	const first, second = "(not shown): ", "again: "
	for repetition, code := range map[string]int{"right horse\n": 0, "right house\n": 1} {
		d := startDialogue(t, dir, "account", "create", "--name", "a", "--email", fmt.Sprintf("a%d@example.com", code), "--password", "-")
		for _, step := range [][2]string{{first, "right horse\n"}, {second, repetition}} {
			d.waitFor(step[0])
			scene.Eventually(t, "a terminal that shows nothing", func() bool { return !d.echoes() })
			if _, err := d.ptm.WriteString(step[1]); err != nil {
				t.Fatal(err)
			}
		}
		_ = d.command.Wait()
		if got := d.command.ProcessState.ExitCode(); got != code || strings.Contains(d.text.String(), "horse") || !d.echoes() {
			t.Errorf("ended with %d, want %d; the terminal has shown %q and echoes %t", got, code, d.text.String(), d.echoes())
		}
	}
	d := startDialogue(t, dir, "account", "create", "--name", "a", "--email", "b@example.com", "--password", "-")
	d.waitFor(first)
	scene.Eventually(t, "a terminal that shows nothing", func() bool { return !d.echoes() })
	if err := d.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = d.command.Wait()
	if got := d.command.ProcessState.ExitCode(); got != 1 || !d.echoes() {
		t.Errorf("after SIGINT the command ended with %d and the terminal echoes %t, want 1 and true", got, d.echoes())
	}
}

// TestApplyConfirmsRemovals checks that apply asks on a terminal before it removes a model
// with requests, unless there is --yes or --dry-run. Without a terminal it only warns.
func TestApplyConfirmsRemovals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, secret := slowService(t, dir, "{}")
	if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
		t.Fatalf("the chat request got %d %s, want 200", status, body)
	}
	s.stop()
	newCatalog := writeFile(t, dir, "other.yaml", `
models:
  - {id: swift-2, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: main, provider: openai, base_url: 'http://127.0.0.1:1', api_key: '${NOBODY_SET_THIS}', models: {swift-2: swift}}
`)
	apply := func(answer string, args ...string) (int, string) {
		return runWithAnswer(t, dir, answer, append([]string{"apply"}, args...)...)
	}
	if code, text := apply("n\n", newCatalog); code != 1 || !strings.Contains(text, "this removes swift-1, which had 1 request in") ||
		!strings.Contains(text, "[y/N]") || !strings.Contains(text, "not confirmed, so nothing was changed") ||
		!strings.Contains(text, "line main is out of service (checked in this terminal; the service may have it)") {
		t.Errorf("after the answer no, apply ended with %d, want 1: %s", code, text)
	}
	if code, text := apply("", newCatalog, "--dry-run"); code != 0 || !strings.Contains(text, "this removes swift-1") ||
		strings.Contains(text, "[y/N]") {
		t.Errorf("the dry run ended with %d, want 0 and no question: %s", code, text)
	}
	if got := tollgate(t, dir, "catalog", "--history"); strings.Contains(got.out, "revision 2") {
		t.Errorf("the catalog was applied without a confirmation: %s", got.out)
	}
	if code, text := apply("y\n", newCatalog); code != 0 || !strings.Contains(text, "[y/N]") {
		t.Errorf("after the answer yes, apply ended with %d, want 0: %s", code, text)
	}
	if got := tollgate(t, dir, "apply", filepath.Join(dir, "catalog.yaml")); got.code != 0 || got.errors != "" {
		t.Errorf("removing an unused model ended with %+v, want exit 0 without a warning", got)
	}
	if code, text := apply("", newCatalog, "--yes"); code != 0 || strings.Contains(text, "[y/N]") {
		t.Errorf("apply --yes ended with %d, want 0 and no question: %s", code, text)
	}
	if got := tollgate(t, dir, "apply", filepath.Join(dir, "catalog.yaml")); got.code != 0 {
		t.Errorf("apply without a terminal ended with %+v, want exit 0", got)
	}
	got := tollgate(t, dir, "apply", newCatalog)
	if got.code != 0 || !strings.Contains(got.errors, "this removes swift-1") ||
		!strings.Contains(got.errors, "lines[0]: the variable NOBODY_SET_THIS is not set on this node, so line main is out of service") {
		t.Errorf("apply without a terminal ended with %+v, want exit 0 and both warnings", got)
	}
}
