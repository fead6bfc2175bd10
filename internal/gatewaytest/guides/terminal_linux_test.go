package guides

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

const columns = 120 // width of a reader's terminal

// terminal is a pseudo terminal, because many commands write a different output to files.
type terminal struct {
	path   string
	master *os.File
	slave  *os.File // stays open, because reads from master fail if no process has the terminal open

	mu  sync.Mutex
	out strings.Builder
}

// openTerminal opens a terminal for the rest of the test.
func openTerminal(t testing.TB) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	var failed error
	if err := raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed != nil {
			return
		}
		if number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed != nil {
			return
		}
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: columns})
	}); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	term := &terminal{path: "/dev/pts/" + strconv.Itoa(number), master: master}
	if term.slave, err = os.OpenFile(term.path, os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	var reader sync.WaitGroup
	reader.Go(term.read)
	t.Cleanup(func() {
		_ = term.slave.Close()
		_ = master.Close()
		reader.Wait()
	})
	return term
}

// hidesInput reports whether echo is off, as while a command reads a password.
func (term *terminal) hidesInput() bool {
	state, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO == 0
}

// enter types a line and the Enter key.
func (term *terminal) enter(line string) error {
	_, err := term.master.WriteString(line + "\n")
	return err
}

// read collects the output until the terminal is closed.
func (term *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := term.master.Read(buf)
		term.mu.Lock()
		term.out.Write(buf[:n])
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// written returns the output so far. If the command has ended, ended is true and code is its
// exit code.
func (term *terminal) written() (output string, ended bool, code int) {
	term.mu.Lock()
	defer term.mu.Unlock()
	all := term.out.String()
	before, after, ok := strings.Cut(all, endMark)
	if !ok {
		return all, false, 0
	}
	text, rest, ok := strings.Cut(after, "\a")
	if !ok {
		return before, false, 0
	}
	if _, err := fmt.Sscan(text, &code); err != nil {
		code = -1
	}
	return before + rest, true, code
}
