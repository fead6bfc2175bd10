package guides

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/s3server"
)

// endMark begins what the shell writes to a terminal when its command has ended: its
// exit code follows, and a bell.
const endMark = "\x1b]tollgate;"

// driver runs the commands, each a file, in one shell, each on a terminal of its own. When
// it is told to end, all that still runs is told so too, and waited for.
const driver = `trap exit TERM
trap 'trap "" TERM; wait' EXIT
while read -r step terminal <&3; do
  . "$step" 3<&- <"$terminal" >"$terminal" 2>&1
  printf '\033]tollgate;%s\007' "$?" >"$terminal"
done`

const (
	pollEvery = 5 * time.Millisecond // how often a command's output is looked at
	endTime   = 10 * time.Second     // what still runs when a guide is over has so long to end by itself
)

// shell is a bash in an empty folder, with an empty home and a network of its own.
type shell struct {
	t        testing.TB
	commands *os.File // what it reads the names of commands from
	done     chan struct{}
	folder   string // where it works
	scripts  string // the folder of the commands' files
	count    int
	patience time.Duration // the longest that a command may take, or what it is to print
}

// openShell starts one until the test ends, with tollgate first on its PATH.
func openShell(t testing.TB, r runner, further ...string) *shell {
	t.Helper()
	base := t.TempDir()
	s := &shell{t: t, patience: r.patience, folder: filepath.Join(base, "work"), scripts: filepath.Join(base, "commands"),
		done: make(chan struct{})}
	home, bin := filepath.Join(base, "home"), filepath.Join(base, "bin")
	for _, dir := range []string{s.folder, s.scripts, home, bin} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	npm, err := filepath.Abs(filepath.Join("testdata", "npm"))
	if err != nil {
		t.Fatal(err)
	}
	for name, program := range map[string]string{"tollgate": r.binary, "npm": npm} {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.commands = write
	cmd := r.own.command("bash", "--noprofile", "--norc", "-c", driver)
	cmd.Dir = s.folder
	cmd.Env = append(append(cmd.Env, environment(t, home, bin)...), further...)
	cmd.Env = append(cmd.Env, "SEEN="+s.seen())
	cmd.ExtraFiles = []*os.File{read}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read.Close() // the child has it
	go func() {
		_ = cmd.Wait() // it is killed
		close(s.done)
	}()
	t.Cleanup(func() {
		defer func() { _ = write.Close() }()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) // all of its group
		select {
		case <-s.done:
		case <-time.After(endTime):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // where it is the first process of a namespace, all of that
		<-s.done
	})
	return s
}

// environment is all that a guide's shell has of the caller's.
func environment(t testing.TB, home, bin string) []string {
	t.Helper()
	tree, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o777); err != nil { // PostgreSQL may run as another user
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TREE=" + tree, "LANG=C.UTF-8", "TZ=UTC", "TERM=dumb",
		"TMPDIR=" + temp}
	// The S3 server by a name that does not begin as those of settings: they are warned of.
	for name, as := range map[string]string{"PYENV_ROOT": "PYENV_ROOT", s3server.EnvBinary: "S3SERVER"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, as+"="+value)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // below the home that guides do not have
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	return env
}

// do writes a file or runs a command, and fails the test where that does not go as the
// guide says.
func (s *shell) do(path string, st step) error {
	if st.file != "" {
		file := filepath.Join(s.folder, filepath.FromSlash(st.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(st.text), 0o644)
	}
	term := openTerminal(s.t)
	if err := s.start(term, st); err != nil {
		return err
	}
	wrong := s.wait(term, st)
	output, _, _ := term.written()
	if testing.Verbose() {
		s.t.Logf("%s:%d: $ %s\n%s", path, st.line, st.text, strings.Join(shown(output), "\n"))
	}
	if wrong == "" {
		if st.hidden {
			return nil
		}
		return os.WriteFile(s.seen(), []byte(strings.Join(shown(output), "\n")+"\n"), 0o600)
	}
	return fmt.Errorf("%s:%d: $ %s\n%s\n--- wanted\n%s\n--- got\n%s\n---", path, st.line, st.text, wrong, wanted(st),
		strings.Join(shown(output), "\n"))
}

// seen is the file with what the last command printed that a reader saw.
func (s *shell) seen() string { return filepath.Join(s.scripts, "seen") }

// start hands a command to the shell.
func (s *shell) start(term *terminal, st step) error {
	s.count++
	script := filepath.Join(s.scripts, fmt.Sprint(s.count))
	text := st.text + "\n"
	if st.goesOn {
		text = strings.TrimSuffix(st.text, " &") + " &\n"
	}
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := fmt.Fprintln(s.commands, script, term.path)
	return err
}

// wait waits for a command's end, or for what it prints where it goes on, and returns
// what is wrong.
func (s *shell) wait(term *terminal, st step) (wrong string) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	patience := s.patience
	if st.hidden { // it may build what a reader has already
		patience *= 3
	}
	late := time.After(patience)
	answered := 0 // the output up to the last question that was
	for {
		output, ended, code := term.written()
		if st.typed != "" && len(output) > answered && strings.HasSuffix(output, ": ") && term.unseen() {
			answered = len(output)
			if err := term.enter(st.typed); err != nil {
				return err.Error()
			}
		}
		wrong = st.judge(output, code)
		if ended && (wrong == "" || !st.goesOn) {
			return wrong
		}
		select {
		case <-tick.C:
		case <-s.done:
			return "the shell ended"
		case <-late:
			if ended {
				return wrong
			}
			return fmt.Sprintf("it has not ended after %v", patience)
		}
	}
}

// judge returns what is wrong with how a command ended, or, where it goes on, with what
// it has printed so far.
func (st step) judge(output string, code int) string {
	if code != st.exit {
		return fmt.Sprintf("exit code %d, not %d", code, st.exit)
	}
	got := shown(output)
	if st.hidden && st.json == "" {
		return ""
	}
	if st.json != "" {
		if !matchJSON(st.json, strings.Join(got, "\n")) {
			return "the answer differs"
		}
		return ""
	}
	ok, missing := match(st.want, got, st.goesOn)
	switch want := shown(strings.Join(st.want, "\n")); {
	case ok:
		return ""
	case missing < len(want):
		return "not there: " + want[missing]
	}
	return "it prints more than is wanted"
}

// wanted is what a step's output should be.
func wanted(st step) string {
	switch {
	case st.json != "":
		return st.json
	case st.hidden:
		return "(exit code 0)"
	}
	return strings.Join(st.want, "\n")
}
