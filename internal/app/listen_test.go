package app

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestForbiddenPort uses a fixed error, because machines differ in their forbidden ports.
func TestForbiddenPort(t *testing.T) {
	t.Parallel()
	err := explainListen("listen", "127.0.0.1:80", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)})
	if want := "this user may not listen at 127.0.0.1:80 (permission denied): choose a port from 1024 on with --listen"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if other := errors.New("unknown"); !errors.Is(explainListen("listen", "127.0.0.1:80", other), other) {
		t.Error("another error was changed")
	}
}
