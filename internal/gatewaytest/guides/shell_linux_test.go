package guides

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/gatewaytest/scene"
)

// endMark is the text that the driver writes to a terminal at the end of a command. The exit code
// and a bell follow.
const endMark = "\x1b]tollgate;"

// driver runs commands in one shell, each from a file and on its own terminal. When the driver
// ends, it waits for the running commands, which also get SIGTERM. Each section sets its own ERR
// trap.
const driver = `. "$LIB/functions.sh"
trap exit TERM
trap 'trap "" TERM; wait' EXIT
while read -r step terminal <&3; do
  . "$step" 3<&- <"$terminal" >"$terminal" 2>&1
  printf '\033]tollgate;%s\007' "$?" >"$terminal"
  trap - ERR
done`

const (
	pollEvery   = 5 * time.Millisecond
	repeatEvery = 100 * time.Millisecond
	endTime     = 10 * time.Second // limit for commands that still run at the end of a document
	password    = "correct-Horse-7"
)

var reading = regexp.MustCompile(`^(curl|cat|grep|tollgate (line|job|mail|request) list) `)

// repeatable reports whether a command only reads. Such a command is repeated until its output
// matches, as a reader would repeat it.
func repeatable(command string) bool {
	return reading.MatchString(command+" ") && !strings.Contains(command, " -d ")
}

// shell is a bash in an empty folder, with an empty home directory and its own network.
type shell struct {
	t        testing.TB
	commands *os.File      // file descriptor 3 of the driver
	ended    chan struct{} // closed when the shell has ended
	folder   string
	scripts  string // folder of the files with commands
	count    int
	timeout  time.Duration // of a command
	texts    texts
}

// openShell starts a shell for the rest of the test.
func openShell(t testing.TB, timeout time.Duration) *shell {
	t.Helper()
	base := t.TempDir()
	s := &shell{t: t, timeout: timeout, folder: filepath.Join(base, "work"), scripts: filepath.Join(base, "commands"),
		ended: make(chan struct{}), texts: texts{}}
	home, bin := filepath.Join(base, "home"), filepath.Join(base, "bin")
	for _, dir := range []string{s.folder, s.scripts, home, bin} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, program := range map[string]string{
		"tollgate": scene.Binary(t), "npm": absolute(t, "testdata/lib/npm"), "python3": absolute(t, "testdata/lib/python3"),
	} {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.commands = write
	cmd := isolated("bash", "--noprofile", "--norc", "-c", driver)
	cmd.Dir = s.folder
	cmd.Env = append(cmd.Env, environment(t, home, bin)...)
	cmd.ExtraFiles = []*os.File{read}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = read.Close() // the child has its own copy
	go func() {
		_ = cmd.Wait() // the cleanup kills the shell
		close(s.ended)
	}()
	t.Cleanup(func() {
		defer func() { _ = write.Close() }()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(endTime):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // also ends the namespace
		<-s.ended
	})
	return s
}

func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment returns all variables of the shell.
func environment(t testing.TB, home, bin string) []string {
	t.Helper()
	temp := t.TempDir()
	if err := os.Chmod(temp, 0o777); err != nil { // PostgreSQL may run as another user
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH"), "TMPDIR=" + temp, "LANG=C.UTF-8", "TZ=UTC", "TERM=dumb",
		"TREE=" + absolute(t, "../../.."), "LIB=" + absolute(t, "testdata/lib")}
	// TOLLGATE_TEST_S3SERVER gets another name: the gateway warns about unknown settings.
	for name, as := range map[string]string{"PYENV_ROOT": "PYENV_ROOT", s3server.EnvBinary: "S3SERVER"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, as+"="+value)
		}
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} { // the defaults are in the home directory
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	// Guides install the packages of scripts/packages without a network: testdata/lib/npm and
	// testdata/lib/install.py link installed packages.
	site, _ := filepath.Glob(filepath.Join(absolute(t, packages), "*", "venv/lib/python3*/site-packages"))
	modules, _ := filepath.Glob(filepath.Join(absolute(t, packages), "*", "node_modules"))
	return append(env, "SITE_PACKAGES="+strings.Join(site, " "), "NODE_MODULES="+strings.Join(modules, " "))
}

// do executes a step: it writes a file, or runs a command and checks its output.
func (s *shell) do(st step) error {
	if st.file != "" {
		file := filepath.Join(s.folder, filepath.FromSlash(st.file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(s.texts.fill(st.text)), 0o644)
	}
	if !st.script {
		st.text = s.texts.fill(st.text)
	}
	for deadline := time.Now().Add(s.timeout); ; {
		output, problem := s.run(st)
		if testing.Verbose() {
			s.t.Logf("%s: $ %s\n%s", st.source, st.text, output)
		}
		if problem == "" {
			s.texts.learn(output)
			return nil
		}
		if st.script || !repeatable(st.text) || time.Now().After(deadline) {
			return fmt.Errorf("%s: $ %s\n%s\n--- want\n%s\n--- got\n%s\n---", st.source, st.text, problem,
				strings.Join(st.want, "\n")+st.json, output)
		}
		<-time.After(repeatEvery)
	}
}

// run runs a command once. It returns the visible output, and a description of the problem, if any.
func (s *shell) run(st step) (output, problem string) {
	text := st.text
	switch {
	case st.script:
		text = "trap 'return 1' ERR\n" + text
	case st.background():
		text = strings.TrimSuffix(text, " &") + " &\n"
		if strings.HasPrefix(text, "tollgate serve") && st.want == nil {
			text += "ready\n"
		}
	}
	s.count++
	script := filepath.Join(s.scripts, fmt.Sprint(s.count))
	if err := os.WriteFile(script, []byte(text+"\n"), 0o600); err != nil {
		return "", err.Error()
	}
	term := openTerminal(s.t)
	if _, err := fmt.Fprintln(s.commands, script, term.path); err != nil {
		return "", err.Error()
	}
	timeout := s.timeout
	if st.script { // a section may compile a program
		timeout *= 3
	}
	deadline := time.After(timeout)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for answered := 0; ; {
		text, ended, code := term.written()
		if len(text) > answered && strings.HasSuffix(text, ": ") && term.hidesInput() {
			answered = len(text)
			if err := term.enter(password); err != nil {
				return "", err.Error()
			}
		}
		if output = visible(text); ended || st.background() {
			problem = s.check(st, output, code)
		}
		if ended && (problem == "" || !st.background()) {
			return output, problem
		}
		select {
		case <-tick.C:
		case <-s.ended:
			return output, "the shell ended"
		case <-deadline:
			if ended {
				return output, problem
			}
			return output, fmt.Sprintf("the command has not ended after %v", timeout)
		}
	}
}

// check returns a description of the problem with a command, or the empty string. The output of a
// command in the background may be incomplete.
func (s *shell) check(st step, output string, code int) string {
	switch {
	case code != 0:
		return fmt.Sprintf("exit code %d", code)
	case st.json != "" && !s.texts.matchJSON(st.json, output):
		return "the JSON differs"
	case st.json != "" || st.script:
		return ""
	}
	return s.texts.match(st.want, output, st.background())
}
