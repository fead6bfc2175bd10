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
				t.Errorf("%s: got exit %d and %q, want 2 and one line that names tollgate serve", args, got.code, got.errors)
			}
			if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
				if _, err := os.Stat(path); err == nil || !strings.Contains(got.errors, path) {
					t.Errorf("%s: got %q and the file error %v, want no file and a message with %s", args, got.errors, err, path)
				}
			}
			if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
				t.Errorf("%s left the files %v, %v", args, files, err)
			}
		}
		wantNoDatabase(t, url)
	})
}

// TestDryRunWithoutDatabase checks that a dry run without a database shows the changes and a
// warning, and creates no database.
func TestDryRunWithoutDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachEmpty(t, func(t *testing.T, url string) {
		file, dir := writeSandboxCatalog(t, t.TempDir(), "{}"), t.TempDir()
		got := tollgate(t, dir, "apply", "--dry-run", file, "--database", url)
		if got.code != 0 || got.out != "model swift-1: added\nline main: added\ndry run: nothing was changed, and there is no revision yet\n" {
			t.Errorf("the dry run ended with %d and printed %q, want 0 and both additions", got.code, got.out)
		}
		if !strings.HasPrefix(got.errors, "warning: database: ") || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("standard error is %q, want one warning", got.errors)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("the dry run left the files %v, %v", files, err)
		}
		wantNoDatabase(t, url)
	})
}

// TestStartWithUnusableCatalog checks that a start with an unusable catalog file prints one
// line and leaves no file or folder behind.
func TestStartWithUnusableCatalog(t *testing.T) {
	t.Parallel()
	badCatalog := writeFile(t, t.TempDir(), "bad.yaml", "models:\n  - {id: a, kind: what}\n")
	for file, want := range map[string]string{"gone.yaml": "gone.yaml", badCatalog: "models[0].kind"} {
		dir := t.TempDir()
		got := execute(t, dir, "serve", "--catalog", file, "--listen", "127.0.0.1:0")
		if got.code != 2 || !strings.HasPrefix(got.errors, "tollgate: catalog: ") || !strings.Contains(got.errors, want) ||
			strings.Count(got.errors, "\n") != 1 {
			t.Errorf("serve --catalog %s: got exit %d and %q, want 2 and one line with %q", file, got.code, got.errors, want)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("%s left the files %v, %v", file, files, err)
		}
	}
}

// wantNoDatabase checks that no command has created the database or its tables.
func wantNoDatabase(t *testing.T, url string) {
	t.Helper()
	if path, sqlite := strings.CutPrefix(url, "sqlite:"); sqlite {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the file %s exists (%v), want none", path, err)
		}
		return
	}
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	schema, err := db.Schema(t.Context())
	if err := errors.Join(err, db.Close()); err != nil || schema.Version > 0 {
		t.Errorf("the database has schema %d (%v), want no tables", schema.Version, err)
	}
}

// TestMissingPermissions checks that a command without permission for a file or folder names
// the file or folder and its owner in one line.
func TestMissingPermissions(t *testing.T) {
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
		if got := execute(t, dir, "apply", writeSandboxCatalog(t, dir, "{}"), "--database", database); got.code != 0 {
			t.Fatalf("apply ended with %+v, want exit 0", got)
		}
	}
	owner := "its owner"
	var otherUser syscall.SysProcAttr
	if os.Geteuid() == 0 { // permissions do not bind root
		owner = "belongs to user root"
		otherUser.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
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
		c.Path, c.SysProcAttr = filepath.Join(dir, "tollgate"), &otherUser
		got := runToEnd(t, c)
		if got.code != 2 || !strings.Contains(got.errors, want) || !strings.Contains(got.errors, owner) || strings.Count(got.errors, "\n") != 1 {
			t.Errorf("%s ended with %+v, want exit 2 and one line with %q and %q", args, got, want, owner)
		}
	}
}

// unusedAddress returns an address without a listener. Its port is outside the range of
// automatically chosen ports.
func unusedAddress(t *testing.T) string {
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
			client, err := l.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			copyAndClose := func(dst, src net.Conn) {
				_, _ = io.Copy(dst, src)
				_, _ = dst.Close(), src.Close()
			}
			running.Go(func() { copyAndClose(client, upstream) })
			running.Go(func() { copyAndClose(upstream, client) })
		}
	})
}

// TestServeWaitsForDatabase checks that a service waits for a database that is not reachable
// yet, and then becomes ready.
func TestServeWaitsForDatabase(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(storetest.PostgreSQL(t))
	if err != nil {
		t.Fatal(err)
	}
	server := u.Host
	u.Host = unusedAddress(t)
	s := startService(t, t.TempDir(), "--database", u.String())
	line, err := s.errors.ReadString('\n')
	if err != nil || !strings.Contains(line, "waiting") || !strings.Contains(line, "setting=database") {
		t.Fatalf("the first line is %q, %v, want waiting for the database", line, err)
	}
	forward(t, u.Host, server)
	s.waitUntilReady()
	s.stop()
}

// TestSignalEndsStartWait checks that SIGTERM ends a service that waits for its database or
// media store.
func TestSignalEndsStartWait(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--database", "postgres://a:b@" + unusedAddress(t) + "/c?sslmode=disable"},
		{"--database", "sqlite:x.db", "--media", "s3://bucket?endpoint=http://" + unusedAddress(t) + "&path_style=true"},
	} {
		s := startService(t, t.TempDir(), append(args, "--start-wait", "1h")...)
		if line, err := s.errors.ReadString('\n'); err != nil || !strings.Contains(line, "waiting") {
			t.Fatalf("%v: the first line is %q, %v, want waiting", args, line, err)
		}
		s.signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(s.errors)
		if err := s.cmd.Wait(); err != nil || !strings.Contains(string(rest), "stopped before it was ready") {
			t.Errorf("%v: serve ended with %v and %s, want stopped before it was ready", args, err, rest)
		}
	}
}

// TestStartExitCodes checks that a failed start ends with exit code 2 if the settings must
// change, and with 1 otherwise.
func TestStartExitCodes(t *testing.T) {
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
		{"no server", []string{"--database", "postgres://a:hunter2@" + unusedAddress(t) + "/c", "--start-wait", "1ms"}, 1, "start_wait"},
		{"unknown database", []string{"--database", unknown.String(), "--start-wait", "1h"}, 2, "nobody_made_this"},
		{"address in use", []string{"--listen", busy.Addr().String()}, 1, "in use"},
		{"disk full", nil, 1, "tollgate: database: its disk is full or failing: open the database: "},
	} {
		c.args = append([]string{"serve"}, c.args...)
		run := command(t, t.TempDir(), c.args...)
		if len(c.args) == 1 { // the limit on files acts like a full disk
			run.Args = append([]string{"sh", "-c", `ulimit -f 0 && exec "$0" "$@"`, run.Path}, c.args...)
			run.Path = "/bin/sh"
		}
		got := runToEnd(t, run)
		if got.code != c.code || !strings.Contains(got.errors, c.want) || strings.Contains(got.errors, "hunter2") {
			t.Errorf("%s: serve ended with %+v, want exit %d and %q without the password", c.name, got, c.code, c.want)
		}
	}
}
