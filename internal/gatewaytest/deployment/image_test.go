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

// TestImage follows the Dockerfile without a container. It builds the binary and creates the root
// folder. As root, it also runs the process there, with the image's user and health check.
func TestImage(t *testing.T) {
	if !isEnabled(t) {
		return
	}
	image := readDockerfile(t)
	root := t.TempDir()
	imageRoot := filepath.Join(root, "out")
	build := exec.Command("sh", "-c", strings.ReplaceAll(image.build, "/out", imageRoot))
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", image.build, err, out)
	}
	certificates := "/etc/ssl/certs/ca-certificates.crt"
	copyFile(t, certificates, filepath.Join(imageRoot, certificates))
	size := int64(0)
	must(t, filepath.WalkDir(imageRoot, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		size += info.Size()
		return err
	}))
	t.Logf("the size of the image is %.1f MB", float64(size)/1e6)
	if size > largest {
		t.Errorf("the size of the image is %d bytes; want at most %d", size, largest)
	}
	if os.Getuid() != 0 {
		t.Log("only root may use chroot: the image's process was NOT run")
		return
	}
	runImage(t, image, imageRoot)
}

// runImage runs the image's process with root as its root folder.
func runImage(t *testing.T, image dockerfile, root string) {
	t.Helper()
	uid, err := strconv.ParseUint(strings.Split(image.user, ":")[0], 10, 32)
	if err != nil || uid == 0 {
		t.Fatalf("the image's user is %q; want a number above 0", image.user)
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
		t.Error("the health check passes before the start")
	}
	var output scene.Buffer
	serve := command(image.command)
	serve.Stdout, serve.Stderr = &output, &output
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
		t.Errorf("the process ended with %v:\n%s", err, &output)
	}
	must(t, checkOutside(root))
}

// checkOutside returns an error if the process wrote outside of its volume.
func checkOutside(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch entry.Name() {
		case "data", "etc", "tollgate":
		default:
			err = errors.Join(err, errors.New(entry.Name()+" is new outside of /data"))
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
