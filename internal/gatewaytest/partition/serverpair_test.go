package partition

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// serverPair is a PostgreSQL primary with one synchronous standby. Both run for the rest of the
// test, with the binaries of the test server.
type serverPair struct {
	t                testing.TB
	binaries         string
	dir              string
	owner            *syscall.Credential // of files and processes; nil means the user of the test
	primary, standby *postgres
	receiver         int // the standby's receiver process while it is stopped
	servers          int // number of servers so far
}

type postgres struct {
	url  string
	data string
	port int
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  string        // a file, because children that outlive the server would keep a pipe open
	db   *sql.DB
}

// newServerPair starts a pair. PostgreSQL refuses to run as root, so a test of root uses the owner of
// the test server's files.
func newServerPair(t testing.TB) *serverPair {
	t.Helper()
	p := &serverPair{t: t}
	var running string
	server := scene.OpenDatabase(t, storetest.PostgreSQL(t))
	p.read(server, &running, `SELECT current_setting('data_directory')`)
	p.read(server, &p.binaries, `SELECT setting FROM pg_config WHERE name = 'BINDIR'`)
	var err error
	if p.dir, err = os.MkdirTemp("", "tollgate-pair."); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.remove)
	if os.Getuid() == 0 {
		info, err := os.Stat(running)
		if err != nil {
			t.Fatalf("the test's server does not run here: %v", err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		p.owner = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
		if err := os.Chown(p.dir, int(stat.Uid), int(stat.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	p.primary = p.server()
	p.tool("initdb", "--pgdata="+p.primary.data, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
	p.start(p.primary)
	p.join()
	return p
}

// server returns a server with new files and a free port. It does not start the server.
func (p *serverPair) server() *postgres {
	p.t.Helper()
	p.servers++
	s := &postgres{data: filepath.Join(p.dir, strconv.Itoa(p.servers))}
	s.log = s.data + ".log"
	for { // below the range of ephemeral ports
		s.port = 15000 + rand.IntN(15000)
		free, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", s.port))
		if err == nil {
			_ = free.Close()
			break
		}
	}
	s.url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
	s.db = scene.OpenDatabase(p.t, s.url)
	return s
}

// command returns the command of a PostgreSQL program.
func (p *serverPair) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.binaries, name), args...)
	cmd.Dir = p.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	return cmd
}

func (p *serverPair) tool(name string, args ...string) {
	p.t.Helper()
	if out, err := p.command(name, args...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// join adds a new standby to the primary and waits until commits wait for the standby.
func (p *serverPair) join() {
	p.t.Helper()
	p.standby = p.server()
	p.tool("pg_basebackup", "--pgdata="+p.standby.data, "--dbname="+p.primary.url, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	p.start(p.standby)
	p.until("the standby replicates synchronously", func() bool {
		var n int
		err := p.primary.db.QueryRowContext(p.t.Context(),
			`SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`).Scan(&n)
		return err == nil && n == 1
	})
}

// start starts a server and waits until it answers. A server that ends because of its predecessor's
// files is started again.
func (p *serverPair) start(s *postgres) {
	p.t.Helper()
	p.until("the server starts", func() bool {
		if s.cmd == nil || s.hasEnded() {
			p.launch(s)
		}
		return s.db.PingContext(p.t.Context()) == nil
	})
}

func (p *serverPair) launch(s *postgres) {
	p.t.Helper()
	cmd := p.command("postgres", "-D", s.data)
	for _, setting := range []string{
		"listen_addresses=127.0.0.1", "port=" + strconv.Itoa(s.port), "unix_socket_directories=",
		"max_connections=100", "synchronous_standby_names=*", "wal_retrieve_retry_interval=200ms",
	} {
		cmd.Args = append(cmd.Args, "-c", setting)
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	s.cmd, s.done = cmd, make(chan struct{})
	go func(done chan struct{}) {
		_ = cmd.Wait() // the test kills servers
		close(done)
	}(s.done)
}

// hasEnded reports whether the server's process has ended.
func (p *postgres) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends a server with SIGKILL. Its children end when they notice.
func (p *postgres) kill() {
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
}

// freeze stops the standby's receiver process, so commits wait.
func (p *serverPair) freeze() {
	p.t.Helper()
	p.read(p.standby.db, &p.receiver, `SELECT pid FROM pg_stat_wal_receiver`)
	if err := syscall.Kill(p.receiver, syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
}

// thaw continues the standby's receiver process.
func (p *serverPair) thaw() {
	p.t.Helper()
	if err := syscall.Kill(p.receiver, syscall.SIGCONT); err != nil {
		p.t.Error(err)
	}
	p.receiver = 0
}

// waiting returns the number of commits that wait for the standby.
func (p *serverPair) waiting() (n int) {
	p.t.Helper()
	p.read(p.primary.db, &n, `SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`)
	return n
}

// failOver kills the primary and the stopped receiver, promotes the standby, and creates a new
// standby. It returns the lost bytes of the primary's log.
func (p *serverPair) failOver() (lost int64) {
	p.t.Helper()
	var written string
	p.read(p.primary.db, &written, `SELECT pg_current_wal_flush_lsn()::text`)
	p.primary.kill()
	p.standby.kill()
	_ = syscall.Kill(p.receiver, syscall.SIGKILL) // the process may have ended with its server
	p.receiver = 0
	p.start(p.standby)
	p.read(p.standby.db, &lost, `SELECT pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn())::bigint`, written)
	p.tool("pg_ctl", "promote", "--pgdata="+p.standby.data, "--wait")
	old := p.primary
	p.primary = p.standby
	p.until("the old primary's files are gone", func() bool { return os.RemoveAll(old.data) == nil })
	p.join()
	return lost
}

func (p *serverPair) read(db *sql.DB, into any, query string, args ...any) {
	p.t.Helper()
	if err := db.QueryRowContext(p.t.Context(), query, args...).Scan(into); err != nil {
		p.t.Fatalf("%s: %v", query, err)
	}
}

// until waits until condition returns true. After a minute, it ends the test and shows the servers'
// logs.
func (p *serverPair) until(what string, condition func() bool) {
	p.t.Helper()
	if !soon(p.t, what, condition) {
		for _, s := range []*postgres{p.primary, p.standby} {
			if s != nil {
				log, _ := os.ReadFile(s.log) // the file may be missing
				p.t.Logf("%s:\n%s", s.data, tail(string(log)))
			}
		}
		p.t.FailNow()
	}
}

// remove ends both servers and deletes their files.
func (p *serverPair) remove() {
	if p.receiver != 0 {
		_ = syscall.Kill(p.receiver, syscall.SIGKILL)
	}
	for _, s := range []*postgres{p.standby, p.primary} {
		if s != nil && s.cmd != nil {
			_ = s.cmd.Process.Signal(syscall.SIGQUIT) // it may be gone
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			select {
			case <-s.done:
			case <-ctx.Done():
				s.kill()
			}
			cancel()
		}
	}
	if err := os.RemoveAll(p.dir); err != nil {
		p.t.Error(err)
	}
}
