package crash

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/money"
	"tollgate/internal/store/storetest"
)

// TestFullDisk limits the size of the running process's files. The process then stays alive, reports
// that it is not ready, admits and charges no request, and recovers when the limit is removed.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	provider := fakeprovider.New(t)
	provider.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Answer("hello", 1000, 500) })
	database := storetest.SQLite(t)
	n := open(t, database, provider, "2s")
	account, key := n.Account(10, nil)
	want := func(when string, status int) {
		t.Helper()
		if a := ask(t, n, key, false); a.Status != status {
			t.Errorf("a request %s: %d", when, a.Status)
		}
	}
	want("before", 200)
	waitReady(t, n, "", 200)

	log, err := os.Stat(strings.TrimPrefix(database, "sqlite:") + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(size uint64) {
		t.Helper()
		if err := unix.Prlimit(n.Pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(log.Size()))
	waitReady(t, n, "takes no writes: its disk is full", 503)
	if status, _ := get(t, n, "/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	want("meanwhile", 503)
	scene.Eventually(t, "the log names the disk as the cause of a failed request", func() bool { return failedForDisk(n.Output()) })
	limit(unix.RLIM_INFINITY)
	waitReady(t, n, "", 200)
	want("after", 200)
	if f, want := n.FundsOf(account), 10*money.USD-2*scene.AnswerCost; f.Balance != want {
		t.Errorf("balance %s, want %s", f.Balance, want)
	}
	n.CheckStop(t)
	scene.CheckBooks(t, n.Binary, n.Settings)
}

// failedForDisk reports whether a log line names a full disk as the cause of a failed request.
func failedForDisk(log string) bool {
	for line := range strings.Lines(log) {
		if strings.Contains(line, `"request failed"`) && strings.Contains(line, "the disk of the database is full") {
			return true
		}
	}
	return false
}

// waitReady waits until /readyz answers with a status and a body that contains word.
func waitReady(t *testing.T, n *scene.Node, word string, status int) {
	t.Helper()
	scene.Eventually(t, fmt.Sprintf("/readyz answers %d %s", status, word), func() bool {
		got, body := get(t, n, "/readyz")
		return got == status && strings.Contains(body, word)
	})
}

func get(t *testing.T, n *scene.Node, path string) (int, string) {
	t.Helper()
	res, err := n.Client.Get(n.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}
