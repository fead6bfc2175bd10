package deployment

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/s3server"
	"tollgate/internal/gatewaytest/scene"
)

// grace is the time that a service has to end, the compose file's stop_grace_period.
const grace = time.Minute

// stack runs the services of the compose file as processes of this machine. It changes their
// commands, variables and files to replace the container:
//
//   - Each service has its own address in 127.30.0.0/24 instead of its name and 0.0.0.0, so the
//     ports stay the same. Requests come from 127.0.0.1 instead of the network 172.30.0.0/24.
//   - Each service has a folder as its root, with its volumes.
//   - By default, Caddy and Prometheus listen on all addresses; header and command prevent this.
//   - A script of the image sets up PostgreSQL; setUp replaces the script.
type stack struct {
	t        *testing.T
	folder   string
	services map[string]service
	image    dockerfile // of tollgate
	binary   string     // the image's binary
	running  map[string]*process
}

// process is a running or ended service.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	err  error         // from Wait; valid after done is closed
}

// images has the default commands and variables of the other images.
var images = map[string]struct {
	entry, command []string
	environment    map[string]string
}{
	"caddy": {
		command:     []string{"caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"},
		environment: map[string]string{"XDG_CONFIG_HOME": "/config", "XDG_DATA_HOME": "/data"},
	},
	"postgres": {
		command:     []string{"postgres"},
		environment: map[string]string{"PGDATA": "/var/lib/postgresql/data"},
	},
	"versity/versitygw": {entry: []string{"versitygw"}},
	"prom/prometheus": {
		entry:   []string{"prometheus"},
		command: []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"},
	},
	"busybox": {},
}

// newStack reads the files and creates the folder. At the end of the test, the services stop in the
// reverse order of their start.
func newStack(t *testing.T) *stack {
	t.Helper()
	place, err := os.MkdirTemp("", "tollgate-deployment-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(place, 0o755); err != nil { // PostgreSQL may run as another user
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(place); err != nil {
			t.Error(err)
		}
	})
	return &stack{t: t, folder: place, services: readCompose(t), image: readDockerfile(t),
		binary: scene.Binary(t), running: map[string]*process{}}
}

// address returns the IP address of a service.
func (s *stack) address(name string) string {
	names := make([]string, 0, len(s.services))
	for name := range s.services {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Sprintf("127.30.0.%d", 10+slices.Index(names, name))
}

// root returns the root folder of a service.
func (s *stack) root(name string) string { return filepath.Join(s.folder, name) }

var (
	hostAndPort = regexp.MustCompile(`([a-z0-9-]+):(\d+)\b`)
	anyAddress  = regexp.MustCompile(`^:(\d+)$`)
	absolute    = regexp.MustCompile(`(^|[\s"'=\[,])(/(?:etc|data|config|buckets|prometheus|var)\b)`)
)

// localize replaces a service's paths and addresses with paths and addresses of this machine.
func (s *stack) localize(name, text string) string {
	text = absolute.ReplaceAllString(text, "${1}"+s.root(name)+"${2}")
	text = strings.ReplaceAll(text, "0.0.0.0:", s.address(name)+":")
	text = strings.ReplaceAll(text, "172.30.0.0/24", "127.0.0.1/32")
	text = anyAddress.ReplaceAllString(text, s.address(name)+":$1")
	return hostAndPort.ReplaceAllStringFunc(text, func(match string) string {
		host, port, _ := strings.Cut(match, ":")
		if _, known := s.services[host]; !known {
			return match
		}
		return s.address(host) + ":" + port
	})
}

// mount adds a service's volumes to its root. A named volume is a shared folder. Files from deploy
// are copied and localized.
func (s *stack) mount(name string) {
	s.t.Helper()
	for target, source := range s.services[name].mounts() {
		target = filepath.Join(s.root(name), target)
		if !strings.HasPrefix(source, ".") {
			volume := filepath.Join(s.folder, "volumes", source)
			s.must(os.MkdirAll(volume, 0o755))
			s.must(os.MkdirAll(filepath.Dir(target), 0o755))
			if err := os.Symlink(volume, target); err != nil && !os.IsExist(err) {
				s.t.Fatal(err)
			}
			continue
		}
		source = filepath.Join(folder, "compose", source)
		s.must(filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			to := filepath.Join(target, strings.TrimPrefix(path, source))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, []byte(s.header(name, to)+s.localize(name, string(text))), 0o644)
		}))
	}
}

// header returns lines to insert at the beginning of a service's file.
func (s *stack) header(name, path string) string {
	if name != "caddy" || filepath.Base(path) != "Caddyfile" {
		return ""
	}
	return fmt.Sprintf("{\n\tdefault_bind %[1]s\n\thttp_port 8080\n\tadmin %[1]s:2019\n\tskip_install_trust\n}\n", s.address(name))
}

// up starts a service after its dependencies.
func (s *stack) up(name string) {
	s.t.Helper()
	if s.running[name] != nil {
		return
	}
	for other, dependency := range s.services[name].DependsOn {
		s.up(other)
		switch dependency.Condition {
		case "service_healthy":
			s.healthy(other)
		case "service_completed_successfully":
			<-s.running[other].done
			if err := s.running[other].err; err != nil {
				s.t.Fatalf("%s: %v", other, err)
			}
		default:
			s.t.Fatalf("%s depends on %s: %q", name, other, dependency.Condition)
		}
	}
	s.mount(name)
	s.setUp(name)
	s.start(name)
}

// command returns the command of a service from the compose file or the image.
func (s *stack) command(name string) []string {
	own := s.services[name]
	image, _, _ := strings.Cut(own.Image, ":")
	if image == "tollgate" {
		return s.image.command
	}
	defaults, known := images[image]
	if !known {
		s.t.Fatalf("%s: images has no entry for the image %s", name, own.Image)
	}
	command := defaults.command
	if own.Command != nil {
		command = own.Command
	}
	command = slices.Concat(defaults.entry, command)
	switch name {
	case "prometheus":
		command = append(command, "--web.listen-address=0.0.0.0:9090") // the default; localize replaces the address
	case "postgres":
		command = append(command, "-c", "listen_addresses="+s.address(name), "-c", "unix_socket_directories=")
	}
	return command
}

// environment returns the variables of a service from the image and the compose file.
func (s *stack) environment(name string) []string {
	own := s.services[name]
	image, _, _ := strings.Cut(own.Image, ":")
	pairs := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.root(name), "PGHOST=" + s.address(name)}
	set := images[image].environment
	if image == "tollgate" {
		set = s.image.environment
	}
	for _, variables := range []map[string]string{set, own.Environment} {
		for key, value := range variables {
			pairs = append(pairs, key+"="+s.localize(name, value)) // the last value of a variable applies
		}
	}
	return pairs
}

// process prepares a command of a service.
func (s *stack) process(name string, command []string) *exec.Cmd {
	s.t.Helper()
	args := make([]string, len(command))
	for i, arg := range command {
		args[i] = s.localize(name, arg)
	}
	cmd := exec.Command(s.program(command[0]), args[1:]...)
	cmd.Env = s.environment(name)
	cmd.Dir = s.root(name)
	s.must(os.MkdirAll(cmd.Dir, 0o755))
	if name == "postgres" {
		cmd.SysProcAttr = owner(s.t)
	}
	return cmd
}

// program finds the program of a command.
func (s *stack) program(name string) string {
	s.t.Helper()
	switch name {
	case "/tollgate":
		return s.binary
	case "versitygw":
		if path := os.Getenv(s3server.EnvBinary); path != "" {
			return path
		}
	case "postgres", "initdb", "pg_isready":
		if folder, err := exec.Command("../../../scripts/postgres", "binaries").Output(); err == nil {
			return filepath.Join(strings.TrimSpace(string(folder)), name)
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		s.t.Fatalf("%s is NOT installed: the compose file was not tested", name)
	}
	return path
}

// start runs a service until it is stopped or the test ends.
func (s *stack) start(name string) {
	s.t.Helper()
	cmd := s.process(name, s.command(name))
	logFile, err := os.OpenFile(filepath.Join(s.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	s.must(err)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	p := &process{cmd: cmd, done: make(chan struct{})}
	s.must(cmd.Start())
	s.running[name] = p
	go func() {
		defer close(p.done)
		p.err = cmp.Or(cmd.Wait(), logFile.Close())
	}()
	s.t.Cleanup(func() {
		_ = s.stop(p) // testStop checks the exit
		if s.t.Failed() {
			log, _ := os.ReadFile(logFile.Name()) // may be incomplete
			s.t.Logf("log of %s:\n%s", name, log[max(0, len(log)-4000):])
		}
	})
}

// stop ends a process with SIGTERM, or SIGKILL after grace, as Docker does. It returns the error of
// Wait.
func (s *stack) stop(p *process) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // the process may have ended
	giveUp := time.AfterFunc(grace, func() { _ = p.cmd.Process.Kill() })
	<-p.done
	giveUp.Stop()
	return p.err
}

// healthy waits until a service's own health check passes.
func (s *stack) healthy(name string) {
	s.t.Helper()
	check := s.services[name].Healthcheck.Test
	if strings.HasPrefix(name, "tollgate-") {
		check = append([]string{"CMD"}, s.image.healthcheck...)
	}
	if len(check) < 2 || check[0] != "CMD" {
		s.t.Fatalf("the health check of %s is %q", name, check)
	}
	scene.Eventually(s.t, name+" is healthy", func() bool {
		select {
		case <-s.running[name].done:
			s.t.Fatalf("%s ended: %v", name, s.running[name].err)
		default:
		}
		return s.process(name, check[1:]).Run() == nil
	})
}

// setUp creates the database as PostgreSQL's image does at the first start.
func (s *stack) setUp(name string) {
	s.t.Helper()
	if name != "postgres" {
		return
	}
	set := s.services[name].Environment
	data := filepath.Join(s.root(name), images["postgres"].environment["PGDATA"])
	password := filepath.Join(s.folder, "password")
	s.must(os.WriteFile(password, []byte(set["POSTGRES_PASSWORD"]), 0o644))
	if credential := owner(s.t); credential.Credential != nil {
		real, err := filepath.EvalSymlinks(data)
		s.must(err)
		s.must(os.Chown(real, int(credential.Credential.Uid), int(credential.Credential.Gid)))
	}
	initdb := s.process(name, []string{"initdb", "--pgdata=" + data, "--username=" + set["POSTGRES_USER"], "--pwfile=" + password,
		"--auth=scram-sha-256", "--no-sync"})
	if out, err := initdb.CombinedOutput(); err != nil {
		s.t.Fatalf("initdb: %v\n%s", err, out)
	}
	single := s.process(name, []string{"postgres", "--single", "-D", data, "postgres"})
	single.Stdin = strings.NewReader("CREATE DATABASE " + set["POSTGRES_DB"] + "\n")
	if out, err := single.CombinedOutput(); err != nil {
		s.t.Fatalf("create the database: %v\n%s", err, out)
	}
}

// owner returns the attributes to run PostgreSQL, because PostgreSQL refuses to run as root.
func owner(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}
	}
	for _, name := range []string{"postgres", "nobody"} {
		if account, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(account.Uid) // ids are numbers on every Unix
			gid, _ := strconv.Atoi(account.Gid)
			return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		}
	}
	t.Fatal("no user for PostgreSQL")
	return nil
}

func (s *stack) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
