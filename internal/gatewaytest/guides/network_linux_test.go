package guides

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inside is the environment variable of a copy of the test binary that runs in new namespaces. The
// copy brings up the loopback interface and executes the program in its arguments.
const inside = "TOLLGATE_TEST_GUIDE_INSIDE"

// namespaces returns the clone flags for new network and process namespaces. Root needs no user
// namespace. Other users need one. If the machine allows no namespaces, the flags are 0.
var namespaces = sync.OnceValue(func() uintptr {
	for _, flags := range []uintptr{
		syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUSER,
	} {
		if commandIn(flags, "true").Run() == nil {
			return flags
		}
	}
	return 0
})

// isolated returns a command that runs in new namespaces, if the machine allows them.
func isolated(program string, args ...string) *exec.Cmd {
	return commandIn(namespaces(), program, args...)
}

func commandIn(flags uintptr, program string, args ...string) *exec.Cmd {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: flags}
	if flags == 0 {
		cmd := exec.Command(program, args...)
		cmd.SysProcAttr = attr
		return cmd
	}
	if flags&syscall.CLONE_NEWUSER != 0 { // keep the user id, and allow low ports
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		path = program // Start will return the error
	}
	cmd := exec.Command("/proc/self/exe", append([]string{path}, args...)...)
	cmd.Env = []string{inside + "=yes"}
	cmd.SysProcAttr = attr
	return cmd
}

// TestMain runs the tests, or prepares new namespaces for the shell of a guide.
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

// loopbackUp brings up the loopback interface of a new network namespace.
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
