package deployment

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tollgate/internal/gatewaytest/scene"
)

// largest is the maximum size of the image in bytes.
const largest = 60_000_000

// TestImage follows the Dockerfile without a container: it builds the binary, creates the root
// folder and, as root, runs the process in it with its user and its health check.
func TestImage(t *testing.T) {
	if !asked(t) {
		return
	}
	image := readDockerfile(t)
	root := t.TempDir()
	made := filepath.Join(root, "out")
	build := exec.Command("sh", "-c", strings.ReplaceAll(image.build, "/out", made))
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", image.build, err, out)
	}
	certificates := "/etc/ssl/certs/ca-certificates.crt"
	copyFile(t, certificates, filepath.Join(made, certificates))
	size := int64(0)
	must(t, filepath.WalkDir(made, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	}))
	t.Logf("the image has %.1f MB", float64(size)/1e6)
	if size > largest {
		t.Errorf("the image has %d bytes, more than %d", size, largest)
	}
	if os.Getuid() != 0 {
		t.Log("only root can change the root: the image's process was NOT run")
		return
	}
	runImage(t, image, made)
}

// runImage runs the image's process in a folder.
func runImage(t *testing.T, image dockerfile, root string) {
	t.Helper()
	uid, err := strconv.ParseUint(strings.Split(image.user, ":")[0], 10, 32)
	if err != nil || uid == 0 {
		t.Fatalf("the user is %q", image.user)
	}
	must(t, os.Chown(filepath.Join(root, "data"), int(uid), int(uid)))
	for folder := root; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
		must(t, os.Chmod(folder, 0o755))
	}
	// The process listens on one address instead of all.
	listen := strings.Replace(image.environment["TOLLGATE_LISTEN"], "0.0.0.0", "127.30.0.100", 1)
	command := func(words []string) *exec.Cmd {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Dir = "/data"
		for name, value := range image.environment {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, "TOLLGATE_LISTEN="+listen)
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
		return cmd
	}
	if command(image.healthcheck).Run() == nil {
		t.Error("healthy before it runs")
	}
	var said scene.Buffer
	serve := command(image.command)
	serve.Stdout, serve.Stderr = &said, &said
	must(t, serve.Start())
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			_ = serve.Process.Kill()
			_ = serve.Wait()
		}
	})
	scene.Eventually(t, "the image is healthy", func() bool { return command(image.healthcheck).Run() == nil })
	answer, err := http.Get("http://" + listen + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	must(t, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %s", answer.Status)
	}
	if _, err := os.Stat(filepath.Join(root, "data/tollgate.db")); err != nil {
		t.Error(err)
	}
	must(t, serve.Process.Signal(syscall.SIGTERM))
	stopped = true
	if err := serve.Wait(); err != nil {
		t.Errorf("it ended with %v and said:\n%s", err, &said)
	}
	must(t, outside(root))
}

// outside returns an error if the process wrote outside of its volume.
func outside(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "data", "etc", "tollgate":
		default:
			err = errors.Join(err, errors.New(entry.Name()+" is new beside /data"))
		}
	}
	return err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	raw, err := os.ReadFile(from)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, raw, 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
