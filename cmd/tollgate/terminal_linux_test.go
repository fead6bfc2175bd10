package main

import (
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
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// openTerminal makes a terminal: the person's side and the command's.
func openTerminal(t *testing.T, columns uint16) (near, far *os.File) {
	t.Helper()
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(near.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetUint32(int(near.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	far, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(far.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: columns}); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// onTerminal runs a command on a terminal of so many columns, and returns the lines
// that it shows.
func onTerminal(t *testing.T, dir string, columns uint16, args ...string) []string {
	t.Helper()
	near, far := openTerminal(t, columns)
	defer near.Close()
	c := command(t, dir, args...)
	c.Stdout = far
	shown := make(chan string)
	go func() {
		out, _ := io.ReadAll(near) // ends with an error when the far side is closed
		shown <- string(out)
	}()
	err := c.Run()
	far.Close()
	text := <-shown
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, text)
	}
	return strings.Split(strings.TrimRight(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")
}

// TestLargeCreditsAreAskedFor: a person confirms a large credit, and an exponent is
// no amount.
func TestLargeCreditsAreAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := tollgate(t, dir, "apply", sandbox(t, dir, "{}")); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	id, _ := must(t, dir, "account", "create", "--name", "a")["id"].(string)
	for _, amount := range []string{"1e3", "1E3", "5e-1", "0.1e1", "-1e3"} {
		if got := tollgate(t, dir, "account", "credit", id, amount); got.code != 2 || !strings.Contains(got.errors, "decimal number") {
			t.Errorf("%s: %+v", amount, got)
		}
	}
	credit := func(answer string, args ...string) (string, error) {
		near, far := openTerminal(t, 120)
		defer near.Close()
		c := command(t, dir, append([]string{"account", "credit", id}, args...)...)
		c.Stdin, c.Stderr = far, far
		if _, err := near.WriteString(answer + "\n"); err != nil {
			t.Fatal(err)
		}
		shown := make(chan string)
		go func() {
			out, _ := io.ReadAll(near)
			shown <- string(out)
		}()
		err := c.Run()
		far.Close()
		return <-shown, err
	}
	if shown, err := credit("n", "5000"); err == nil || !strings.Contains(shown, "Credit 5000 USD to account "+id+"?") {
		t.Errorf("no: %v: %s", err, shown)
	}
	if shown, err := credit("", "-1000.5"); err == nil || !strings.Contains(shown, "Credit -1000.5 USD") {
		t.Errorf("no answer: %v: %s", err, shown)
	}
	if shown, err := credit("y", "5000"); err != nil {
		t.Errorf("yes: %v: %s", err, shown)
	}
	if shown, err := credit("", "2000", "--yes"); err != nil || strings.Contains(shown, "?") {
		t.Errorf("--yes: %v: %s", err, shown)
	}
	if shown, err := credit("", "1000"); err != nil || strings.Contains(shown, "?") {
		t.Errorf("small: %v: %s", err, shown)
	}
	if got := must(t, dir, "account", "get", id); got["balance_usd"] != 8000.0 {
		t.Errorf("balance %v", got["balance_usd"])
	}
}

// TestTerminal sees tables that fit, without what could move the cursor.
func TestTerminal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := tollgate(t, dir, "apply", sandbox(t, dir, "{}")); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	id, _ := must(t, dir, "account", "create", "--name", "Söhne", "--email", "a@example.com")["id"].(string)
	// A former version took any name.
	db := storetest.Open(t, "sqlite:"+filepath.Join(dir, "data", "tollgate.db"), store.Options{})
	if err := db.Update(t.Context(), func(tx *store.Tx) error {
		changed, err := tx.Exec(`UPDATE account SET name = $1 WHERE id = $2`, "Söhne \u202e", id)
		if changed != 1 {
			t.Errorf("%d rows changed", changed)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	must(t, dir, "account", "create", "--name", "b")
	must(t, dir, "account", "credit", id, "12.5")
	must(t, dir, "account", "credit", id, "0.0125", "--note", strings.Repeat("long ", 30))
	narrow := onTerminal(t, dir, 60, "account", "list")
	if fields := strings.Fields(narrow[0]); strings.Join(fields, " ") != "ID NAME BALANCE USD" || len(narrow) != 5 {
		t.Errorf("narrow: %q", narrow)
	}
	if !strings.Contains(narrow[1], "Söhne ·") || !strings.HasSuffix(narrow[1], "12.5125") || !strings.HasSuffix(narrow[2], " 0.00") {
		t.Errorf("cells: %q", narrow)
	}
	if wide := onTerminal(t, dir, 200, "account", "list"); len(wide) != 3 || !strings.Contains(wide[0], "EMAIL") {
		t.Errorf("wide: %q", wide)
	}
	for _, args := range [][]string{{"account", "entries", id}, {"account", "list", "--limit", "1"}, {"account", "get", id}, {"usage"}} {
		for _, columns := range []uint16{80, 120} {
			for _, line := range onTerminal(t, dir, columns, args...) {
				if n := utf8.RuneCountInString(line); n > int(columns) {
					t.Errorf("%v: %d columns of %d: %q", args, n, columns, line)
				}
			}
		}
	}
	details := strings.Join(onTerminal(t, dir, 80, "account", "get", id), "\n")
	if !strings.Contains(details, "\nbalance usd          12.5125\n") || !strings.Contains(details, "\ndisabled             no\n") {
		t.Errorf("details: %s", details)
	}
	if got := onTerminal(t, dir, 80, "line", "list"); !strings.HasPrefix(got[0], "No node has said") {
		t.Errorf("no lines: %q", got)
	}
	if got := onTerminal(t, dir, 80, "account", "list", "--json"); got[0] != "{" {
		t.Errorf("JSON: %q", got)
	}
	if got := onTerminal(t, dir, 80, "account", "list", "--csv"); !strings.HasPrefix(got[0], "id,name,email,") {
		t.Errorf("CSV: %q", got)
	}
}

// TestKeyOfUnknownModels sees warnings where they are read: in JSON as the API has them,
// beside a table or CSV on standard error.
func TestKeyOfUnknownModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := tollgate(t, dir, "apply", sandbox(t, dir, "{}")); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	id, _ := must(t, dir, "account", "create", "--name", "a")["id"].(string)
	const models, about = "--allowed-models=sandbox-caht", "allowed_models: the catalog has no model sandbox-caht, "
	made := must(t, dir, "key", "create", id, models)
	if w, _ := made["warnings"].([]any); len(w) != 1 || !strings.HasPrefix(w[0].(string), about) {
		t.Errorf("JSON: %v", made)
	}
	csv := tollgate(t, dir, "key", "create", id, models, "--csv")
	if csv.code != 0 || !strings.HasPrefix(csv.errors, "warning: "+about) || strings.Count(csv.errors, "\n") != 1 ||
		!strings.Contains(csv.out, "sandbox-caht") || strings.Contains(csv.out, "warning") || strings.Contains(csv.out, about) {
		t.Errorf("CSV: %+v", csv)
	}
	key, _ := made["id"].(string)
	table := strings.Join(onTerminal(t, dir, 120, "key", "change", key, models), "\n")
	if !strings.Contains(table, "sandbox-caht") || strings.Contains(table, "warning") {
		t.Errorf("table: %s", table)
	}
}

// dialogue is a command on a terminal, with what it shows.
type dialogue struct {
	t         *testing.T
	near, far *os.File
	command   *exec.Cmd
	shown     strings.Builder
}

// converse starts a command on a terminal.
func converse(t *testing.T, dir string, args ...string) *dialogue {
	t.Helper()
	near, far := openTerminal(t, 80)
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	d := &dialogue{t: t, near: near, far: far, command: command(t, dir, args...)}
	d.command.Stdin, d.command.Stderr = far, far
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// until reads up to a question.
func (d *dialogue) until(question string) {
	d.t.Helper()
	buf := make([]byte, 256)
	for !strings.Contains(d.shown.String(), question) {
		n, err := d.near.Read(buf)
		d.shown.Write(buf[:n])
		if err != nil {
			d.t.Fatalf("%v after %q", err, d.shown.String())
		}
	}
}

// echoes tells whether the terminal shows what is typed.
func (d *dialogue) echoes() bool {
	state, err := unix.IoctlGetTermios(int(d.far.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO != 0
}

// TestTypedPasswordIsNotShown: it is asked for twice, and a signal leaves the terminal as it
// was.
func TestTypedPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := tollgate(t, dir, "apply", sandbox(t, dir, "{}")); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	const first, second = "which is not shown: ", "once more: "
	for again, code := range map[string]int{"right horse\n": 0, "right house\n": 1} {
		d := converse(t, dir, "account", "create", "--name", "a", "--email", fmt.Sprintf("a%d@example.com", code), "--password", "-")
		for _, step := range [][2]string{{first, "right horse\n"}, {second, again}} {
			d.until(step[0])
			scene.Eventually(t, "a terminal that shows nothing", func() bool { return !d.echoes() })
			if _, err := d.near.WriteString(step[1]); err != nil {
				t.Fatal(err)
			}
		}
		_ = d.command.Wait()
		if got := d.command.ProcessState.ExitCode(); got != code || strings.Contains(d.shown.String(), "horse") || !d.echoes() {
			t.Errorf("exit %d, want %d; shown %q, echo %t", got, code, d.shown.String(), d.echoes())
		}
	}
	d := converse(t, dir, "account", "create", "--name", "a", "--email", "b@example.com", "--password", "-")
	d.until(first)
	scene.Eventually(t, "a terminal that shows nothing", func() bool { return !d.echoes() })
	if err := d.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = d.command.Wait()
	if got := d.command.ProcessState.ExitCode(); got != 1 || !d.echoes() {
		t.Errorf("exit %d, echo %t", got, d.echoes())
	}
}

// TestApplyAsksBeforeModelsInUseGo answers on a terminal, says --yes, and runs as a
// script does.
func TestApplyAsksBeforeModelsInUseGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, secret := slowService(t, dir, "{}")
	if status, body := s.request("POST", "/v1/chat/completions", secret, question); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	s.stop()
	other := filepath.Join(dir, "other.yaml")
	doc := `
models:
  - {id: swift-2, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2}}
lines:
  - {id: main, provider: openai, base_url: 'http://127.0.0.1:1', api_key: '${NOBODY_SET_THIS}', models: {swift-2: swift}}
`
	if err := os.WriteFile(other, []byte(doc), 0o600); err != nil {
		t.Fatal(err)
	}
	apply := func(answer string, args ...string) (int, string) {
		near, far := openTerminal(t, 80)
		defer near.Close()
		c := command(t, dir, append([]string{"apply"}, args...)...)
		c.Stdin, c.Stderr = far, far
		if _, err := near.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		shown := make(chan string)
		go func() {
			out, _ := io.ReadAll(near)
			shown <- string(out)
		}()
		_ = c.Run()
		far.Close()
		return c.ProcessState.ExitCode(), <-shown
	}
	if code, said := apply("n\n", other); code != 1 || !strings.Contains(said, "swift-1 is removed, which had 1 request in") ||
		!strings.Contains(said, "[y/N]") || !strings.Contains(said, "not applied") {
		t.Errorf("no: exit %d, %s", code, said)
	}
	if code, said := apply("", other, "--dry-run"); code != 0 || !strings.Contains(said, "is removed") || strings.Contains(said, "[y/N]") {
		t.Errorf("a dry run: exit %d, %s", code, said)
	}
	if got := tollgate(t, dir, "catalog", "--history"); strings.Contains(got.out, "revision 2") {
		t.Errorf("was applied: %s", got.out)
	}
	if code, said := apply("y\n", other); code != 0 || !strings.Contains(said, "[y/N]") {
		t.Errorf("yes: exit %d, %s", code, said)
	}
	if got := tollgate(t, dir, "apply", filepath.Join(dir, "catalog.yaml")); got.code != 0 || got.errors != "" {
		t.Errorf("a model that nobody used: %+v", got)
	}
	if code, said := apply("", other, "--yes"); code != 0 || strings.Contains(said, "[y/N]") {
		t.Errorf("--yes: exit %d, %s", code, said)
	}
	if got := tollgate(t, dir, "apply", filepath.Join(dir, "catalog.yaml")); got.code != 0 {
		t.Errorf("%+v", got)
	}
	got := tollgate(t, dir, "apply", other)
	if got.code != 0 || !strings.Contains(got.errors, "swift-1 is removed") ||
		!strings.Contains(got.errors, "lines[0]: the variable NOBODY_SET_THIS is not set on this node, so line main is out of service") {
		t.Errorf("a script: %+v", got)
	}
}
