package scene

import (
	"database/sql"
	"encoding/json"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"tollgate/internal/money"
)

// OpenDatabase opens the database of running processes.
func OpenDatabase(t testing.TB, database string) *sql.DB {
	t.Helper()
	driver, source := "pgx", database
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		driver, source = "sqlite", "file:"+path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// Node is a gateway for tests of jobs. Database and media survive kills and restarts.
type Node struct {
	T        testing.TB
	Binary   string
	Settings map[string]string
	Media    string
	Client   *http.Client
	*Process
}

// NewNode starts a node on a database, with the settings of more.
func NewNode(t testing.TB, binary, database string, more map[string]string) *Node {
	t.Helper()
	n := &Node{T: t, Binary: binary, Media: filepath.Join(t.TempDir(), "media")}
	n.Settings = map[string]string{"database": database, "media": "file:" + n.Media, "node_lease": "2s", "FAILING_LINE_KEY": Credential}
	maps.Copy(n.Settings, more)
	n.Client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}, Timeout: time.Minute}
	t.Cleanup(n.Client.CloseIdleConnections)
	n.Process = Start(t, binary, n.Settings)
	return n
}

// Second starts another node with the same database and media.
func (n *Node) Second() *Node {
	n.T.Helper()
	other := *n
	other.Process = Start(n.T, n.Binary, n.Settings)
	return &other
}

// Restart starts a new process after the old one has ended.
func (n *Node) Restart() {
	n.T.Helper()
	n.Process = Start(n.T, n.Binary, n.Settings)
}

// OperatorJob is a job in the operator API.
type OperatorJob struct {
	Job
	Account, Line, Node string
	Held                money.Amount `json:"held_usd"`
	Cost                money.Amount `json:"cost_usd"`
	Attempts            []struct {
		Line, Code, Next string
		Lost             bool
		Ticket           string
	}
	Steps []struct {
		Name string
		At   int64 `json:"at_ms"`
	}
}

// String returns the steps and attempts of the job.
func (o OperatorJob) String() string {
	raw, _ := json.Marshal([]any{o.Steps, o.Attempts})
	return string(raw)
}

// Has reports whether the job has reached a step.
func (o OperatorJob) Has(step string) bool {
	for _, s := range o.Steps {
		if s.Name == step {
			return true
		}
	}
	return false
}

// OperatorJob returns a job from the operator API.
func (n *Node) OperatorJob(t testing.TB, id string) OperatorJob {
	t.Helper()
	var o OperatorJob
	n.Admin("GET", "/jobs/"+id, nil, &o)
	return o
}

// WaitForStep waits until a job has reached a step.
func (n *Node) WaitForStep(t testing.TB, id, step string) {
	t.Helper()
	var o OperatorJob
	Eventually(t, "job "+id+" reaches "+step, func() bool {
		if o = n.OperatorJob(t, id); o.Final() && !o.Has(step) {
			t.Fatalf("job %s has ended: %s, %s", id, o.Raw, o)
		}
		return o.Has(step)
	})
}

// JobsOf returns the jobs of an account.
func (n *Node) JobsOf(t testing.TB, account string) []OperatorJob {
	t.Helper()
	return list(n.Process, "/jobs?limit=100&account="+account, func(o OperatorJob) string { return o.ID })
}
