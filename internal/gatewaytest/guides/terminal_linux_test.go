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

// columns are how wide a reader's terminal is.
const columns = 120

// terminal is where a command runs, so that it prints what its reader sees.
type terminal struct {
	path   string
	master *os.File
	slave  *os.File // an end that stays open: else reading fails whenever no command has it

	mu  sync.Mutex
	out strings.Builder
}

// openTerminal opens one until the test ends.
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

// unseen tells whether the terminal does not show what is typed.
func (term *terminal) unseen() bool {
	state, err := unix.IoctlGetTermios(int(term.slave.Fd()), unix.TCGETS)
	return err == nil && state.Lflag&unix.ECHO == 0
}

// enter types a line.
func (term *terminal) enter(line string) error {
	_, err := term.master.WriteString(line + "\n")
	return err
}

// read keeps what is written to the terminal until it is closed.
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

// written is what has been written so far; ended tells whether the command has ended,
// with its exit code.
func (term *terminal) written() (output string, ended bool, code int) {
	term.mu.Lock()
	defer term.mu.Unlock()
	all := term.out.String()
	before, behind, found := strings.Cut(all, endMark)
	if !found {
		return all, false, 0
	}
	text, later, found := strings.Cut(behind, "\a")
	if !found {
		return before, false, 0
	}
	if _, err := fmt.Sscan(text, &code); err != nil {
		code = -1
	}
	return before + later, true, code
}
