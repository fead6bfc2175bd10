package storetest

import (
	"bufio"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// EnvMariaDB names the variable set to Absent by `make test` if MariaDB is not installed.
const EnvMariaDB = "TOLLGATE_TEST_MARIADB"

// MariaDB starts a server that runs until the test ends, creates an empty database and
// returns its address in the form of go-sql-driver/mysql. The server accepts any
// password. The test is skipped only if EnvMariaDB is Absent.
func MariaDB(t testing.TB) string {
	t.Helper()
	if os.Getenv(EnvMariaDB) == Absent {
		t.Skip("MariaDB is not installed: the test did NOT run on it")
	}
	program, err := exec.LookPath("mariadbd")
	if err != nil {
		program = "/usr/sbin/mariadbd" // Debian's path, which is not on every user's PATH
		if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
			t.Fatal("mariadbd is not installed: scripts/preflight mariadb installs it, or names the command that does")
		}
	}
	// The path of a socket has at most 107 bytes, so t.TempDir is too long.
	dir, err := os.MkdirTemp("", "tg-mariadb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	args := []string{"--no-defaults", "--datadir=" + dir, "--socket=" + socket, "--skip-networking", "--skip-grant-tables",
		"--tmpdir=" + dir, "--innodb-buffer-pool-size=8M", "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=0"}
	if os.Geteuid() == 0 { // MariaDB refuses to run as root
		args = append(args, "--user=nobody")
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		if err := os.Chown(dir, uid, -1); err != nil {
			t.Fatal(err)
		}
	}
	server := exec.Command(program, args...)
	output, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(output)
	ready, log := false, ""
	for !ready && lines.Scan() {
		log += lines.Text() + "\n"
		ready = strings.Contains(lines.Text(), "ready for connections")
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines.Scan() { // a full pipe would stop the server
			continue
		}
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-read
		_ = server.Wait() // returns the error of the kill
	})
	if !ready {
		t.Fatalf("mariadbd did not start:\n%s", log)
	}
	address := "root:secret@unix(" + socket + ")/"
	runMySQL(t, address, "CREATE DATABASE other")
	return address + "other"
}

// LoadMariaDB runs the statements of a dump.
func LoadMariaDB(t testing.TB, address, dump string) {
	t.Helper()
	runMySQL(t, address+"?multiStatements=true", dump)
}

// runMySQL runs text on a connection of its own.
func runMySQL(t testing.TB, address, text string) {
	t.Helper()
	db, err := sql.Open("mysql", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
}
