package access

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestForbiddenPort: which ports a user may listen at differs from machine to machine,
// so the system's error is made here.
func TestForbiddenPort(t *testing.T) {
	t.Parallel()
	err := WithAdvice("listen", "127.0.0.1:80", &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)})
	if want := "this user may not listen at 127.0.0.1:80 (permission denied): choose a port from 1024 on with --listen"; err.Error() != want {
		t.Errorf("told %q; want %q", err, want)
	}
	if other := errors.New("unknown"); !errors.Is(WithAdvice("listen", "127.0.0.1:80", other), other) {
		t.Error("an error of another kind is told otherwise")
	}
}
