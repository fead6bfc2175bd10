package crash

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/store/storetest"
)

// TestFullDisk stops the growth of the running service's files: it reports not ready while it is
// alive, admits nothing, and recovers by itself when there is room again; nothing is charged.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	provider := fakeprovider.New(t)
	provider.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Answer("hello", 1000, 500) })
	database := storetest.SQLite(t)
	binary, settings := scene.Binary(t), map[string]string{
		"database": database, "catalog": catalogFor(t, provider.URL()), "node_lease": "2s", "CRASH_TEST_KEY": "vendor-secret",
	}
	process := scene.Start(t, binary, settings)
	account, key := process.Account(10, nil)
	if s := ask(http.DefaultClient, process.URL, key, false); s.status != 200 {
		t.Fatalf("a request before: %d", s.status)
	}
	waitReady(t, process, "", 200)

	log, err := os.Stat(strings.TrimPrefix(database, "sqlite:") + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	limit := func(size uint64) {
		t.Helper()
		if err := unix.Prlimit(process.Pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}
	limit(uint64(log.Size()))
	waitReady(t, process, "takes no writes: its disk is full", 503)
	if status, _ := get(t, process.URL+"/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	if s := ask(http.DefaultClient, process.URL, key, false); s.status != 503 {
		t.Errorf("a request meanwhile: %d", s.status)
	}
	scene.Eventually(t, "a line of a failed request that names the disk", func() bool { return failedForDisk(process.Output()) })
	limit(unix.RLIM_INFINITY)
	waitReady(t, process, "", 200)
	if s := ask(http.DefaultClient, process.URL, key, false); s.status != 200 {
		t.Errorf("a request after: %d", s.status)
	}
	var state struct {
		Balance float64 `json:"balance_usd"`
	}
	process.Admin("GET", "/accounts/"+account, nil, &state)
	if want := 10 - 2*0.002; state.Balance != want {
		t.Errorf("balance %v, want %v", state.Balance, want)
	}
	if code := process.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, process.Output())
	}
	if out, diag, code := scene.Run(t, binary, settings, "audit"); code != 0 {
		t.Errorf("audit: exit %d\n%s%s", code, out, diag)
	}
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

// waitReady waits for an answer of /readyz.
func waitReady(t *testing.T, process *scene.Process, word string, status int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		got, body := get(t, process.URL+"/readyz")
		if got == status && strings.Contains(body, word) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("readyz answers %d %s, want %d\n%s", got, body, status, process.Output())
		}
		tick := time.NewTimer(20 * time.Millisecond)
		<-tick.C
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
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
