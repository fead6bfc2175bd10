package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestCommandsCreateNoDatabase checks that commands without a database fail, name the missing
// database and create nothing.
func TestCommandsCreateNoDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		for _, args := range []string{
			"account create --name a", "account list", "user list acct_x", "key create acct_x", "codes create 5", "webhook get acct_x",
			"usage", "request list", "job list", "line list", "line drain main", "audit", "catalog",
		} {
			dir := t.TempDir()
			got := tollgate(t, dir, append(strings.Fields(args), "--database", url)...)
			if got.code != 2 || !strings.Contains(got.errors, "tollgate serve") || strings.Count(got.errors, "\n") != 1 {
				t.Errorf("%s: exit %d, %q", args, got.code, got.errors)
			}
			if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
				if _, err := os.Stat(path); err == nil || !strings.Contains(got.errors, path) {
					t.Errorf("%s: %v, %q", args, err, got.errors)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%s left the files %v, %v", args, left, err)
			}
		}
		wantNoDatabase(t, url)
	})
}

// TestDryRunWithoutADatabase checks that a dry run shows the changes, warns of the missing
// database, and creates none.
func TestDryRunWithoutADatabase(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		file, dir := sandbox(t, t.TempDir(), "{}"), t.TempDir()
		got := tollgate(t, dir, "apply", "--dry-run", file, "--database", url)
		if got.code != 0 || got.out != "model swift-1: added\nline main: added\ndry run: nothing was changed, and there is no revision yet\n" {
			t.Errorf("exit %d, %q", got.code, got.out)
		}
		if !strings.HasPrefix(got.errors, "warning: database: ") || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("printed %q", got.errors)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("the dry run left the files %v, %v", left, err)
		}
		wantNoDatabase(t, url)
	})
}

// TestStartWithoutItsCatalog checks that a start with an unusable catalog file prints one
// line and leaves no file or folder behind.
func TestStartWithoutItsCatalog(t *testing.T) {
	t.Parallel()
	bad := writeFile(t, t.TempDir(), "bad.yaml", "models:\n  - {id: a, kind: what}\n")
	for file, want := range map[string]string{"gone.yaml": "gone.yaml", bad: "models[0].kind"} {
		dir := t.TempDir()
		got := execute(t, dir, "serve", "--catalog", file, "--listen", "127.0.0.1:0")
		if got.code != 2 || !strings.HasPrefix(got.errors, "tollgate: catalog: ") || !strings.Contains(got.errors, want) ||
			strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", file, got.code, got.errors)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s left the files %v, %v", file, left, err)
		}
	}
}

// wantNoDatabase checks that no command has created the database or its tables.
func wantNoDatabase(t *testing.T, url string) {
	t.Helper()
	if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
		return
	}
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := db.Schema(t.Context())
	if err := errors.Join(err, db.Close()); err != nil || schema.Version > 0 {
		t.Errorf("a command has created tables: %v", err)
	}
}

// TestFilesOfOthers runs commands without permission for files and folders.
func TestFilesOfOthers(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tollgate-others-") // other users cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary, err := os.ReadFile(command(t, dir).Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "tollgate"), binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"sqlite:closed/a.db", "sqlite:open/a.db"} {
		if got := execute(t, dir, "apply", sandbox(t, dir, "{}"), "--database", database); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	owner := "its owner"
	var other syscall.SysProcAttr
	if os.Geteuid() == 0 { // permissions do not bind root
		owner = "belongs to user root"
		other.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for path, mode := range map[string]os.FileMode{"closed": 0, "open": 0o777, "open/a.db": 0o400} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o700) })
	for args, want := range map[string]string{
		"account list --database sqlite:closed/a.db": "the folder closed ",
		"serve --database sqlite:closed/a.db":        "the folder closed ",
		"serve --database sqlite:closed/new/b.db":    "the folder closed ",
		"account list --database sqlite:open/a.db":   "the file open/a.db ",
		"serve --database sqlite:open/a.db":          "the file open/a.db ",
	} {
		c := command(t, dir, strings.Fields(args)...)
		c.Path, c.SysProcAttr = filepath.Join(dir, "tollgate"), &other
		got := outcome(t, c)
		if got.code != 2 || !strings.Contains(got.errors, want) || !strings.Contains(got.errors, owner) || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// deadAddress returns an address without a listener. Its port is outside the range of
// automatically chosen ports.
func deadAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 2000+rand.IntN(8000)))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port below 10000 is free")
	return ""
}

// forward listens on address and forwards connections to server.
func forward(t *testing.T, address, server string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { _ = l.Close() })
	running.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			pass := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_, _ = to.Close(), from.Close()
			}
			running.Go(func() { pass(in, out) })
			running.Go(func() { pass(out, in) })
		}
	})
}

// TestServeWaitsForItsDatabase starts a service before its database.
func TestServeWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.PostgreSQL(t))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	u.Host = deadAddress(t)
	s := startService(t, t.TempDir(), "--database", u.String())
	line, err := s.errors.ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting") || !strings.Contains(line, "setting=database") {
		t.Fatalf("%q, %v", line, err)
	}
	forward(t, u.Host, server)
	s.waitUntilReady()
	s.stop()
}

// TestASignalEndsTheWait stops a service that waits for its database or media store.
func TestASignalEndsTheWait(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--database", "postgres://a:b@" + deadAddress(t) + "/c?sslmode=disable"},
		{"--database", "sqlite:x.db", "--media", "s3://bucket?endpoint=http://" + deadAddress(t) + "&path_style=true"},
	} {
		s := startService(t, t.TempDir(), append(args, "--start-wait", "1h")...)
		if line, err := s.errors.ReadString('\n'); err != nil || !strings.Contains(line, "waiting") {
			t.Fatalf("%q, %v", line, err)
		}
		s.signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(s.errors)
		if err := s.cmd.Wait(); err != nil || !strings.Contains(string(rest), "stopped before it was ready") {
			t.Errorf("%v: %s", err, rest)
		}
	}
}

// TestExitCodesOfStarts checks that a start fails with code 2 if the settings must change,
// and with 1 otherwise.
func TestExitCodesOfStarts(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.PostgreSQL(t))
	if err != nil {
		t.Fatal(err)
	}
	unknown := *u
	unknown.Path = "/nobody_made_this"
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"no server", []string{"--database", "postgres://a:hunter2@" + deadAddress(t) + "/c", "--start-wait", "1ms"}, 1, "start_wait"},
		{"unknown database", []string{"--database", unknown.String(), "--start-wait", "1h"}, 2, "nobody_made_this"},
		{"address taken", []string{"--listen", busy.Addr().String()}, 1, "in use"},
		{"no room on the disk", nil, 1, "tollgate: database: its disk is full or failing: open the database: "},
	} {
		c.args = append([]string{"serve"}, c.args...)
		run := command(t, t.TempDir(), c.args...)
		if len(c.args) == 1 { // as on a full disk: files cannot grow
			run.Args = append([]string{"sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, run.Path}, c.args...)
			run.Path = "/bin/sh"
		}
		got := outcome(t, run)
		if got.code != c.code || !strings.Contains(got.errors, c.want) || strings.Contains(got.errors, "hunter2") {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
