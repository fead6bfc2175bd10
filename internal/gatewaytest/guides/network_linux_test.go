package guides

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// isolation is what a guide's shell gets of its own, so that guides which use the same
// ports run side by side.
type isolation struct {
	// flags name the namespaces; 0: none, and ports are rewritten.
	flags uintptr
}

// inside is set for the test's own binary when it is started in the new namespaces: it
// brings the loopback up and becomes the program of its arguments.
const inside = "TOLLGATE_TEST_GUIDE_INSIDE"

// namespaces finds what this machine allows: without a user namespace where we are root,
// with one where that is for all, else none.
var namespaces = sync.OnceValue(func() isolation {
	for _, flags := range []uintptr{
		syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER,
	} {
		if (isolation{flags}).command("true").Run() == nil {
			return isolation{flags}
		}
	}
	return isolation{}
})

// command is a program in the namespaces, in a process group of its own.
func (own isolation) command(program string, args ...string) *exec.Cmd {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if own.flags == 0 {
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = attr
		return cmd
	}
	attr.Cloneflags = own.flags
	if own.flags&syscall.CLONE_NEWUSER != 0 { // everybody stays who he is, and may use low ports
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		path = program // starting it says so
	}
	cmd := exec.Command("/proc/self/exe", append([]string{path}, args...)...)
	cmd.Env = []string{inside + "=yes"}
	cmd.SysProcAttr = attr
	return cmd
}

// TestMain is what runs in new namespaces before a guide's shell does.
func TestMain(m *testing.M) {
	if os.Getenv(inside) == "" {
		os.Exit(m.Run())
	}
	err := loopbackUp()
	if err == nil {
		_ = os.Unsetenv(inside)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, "guides:", err)
	os.Exit(1)
}

// loopbackUp makes 127.0.0.1 of a new network usable.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback)
}

// localPort is how guides name ports of their own.
var localPort = regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost):(\d{2,5})\b`)

// gatewayPort is where tollgate listens when nothing else is said.
const gatewayPort = "8080"

// rewritePorts puts free ports in place of all that a guide's text names, and returns the
// one that tollgate has to listen at by default.
func rewritePorts(t testing.TB, text string) (rewritten, listen string) {
	t.Helper()
	ports := map[string]string{gatewayPort: freePort(t)}
	for _, found := range localPort.FindAllStringSubmatch(text, -1) {
		if ports[found[1]] == "" {
			ports[found[1]] = freePort(t)
		}
	}
	return regexp.MustCompile(`\b\d{2,5}\b`).ReplaceAllStringFunc(text, func(number string) string {
		if port := ports[number]; port != "" {
			return port
		}
		return number
	}), ports[gatewayPort]
}

// freePort returns one that nobody listens at.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}
