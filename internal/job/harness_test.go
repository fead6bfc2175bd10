package job

import (
	"bytes"
	"context"
	"encoding/json"
	flags "flag"
	"log/slog"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/job/proof"
	"tollgate/internal/job/row"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/line"
	"tollgate/internal/media"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/webhook"
)

// minParallel is the minimum number of parallel tests. The tests mostly wait.
const minParallel = 8

func TestMain(m *testing.M) {
	flags.Parse()
	if f := flags.Lookup("test.parallel"); f != nil {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && n < minParallel {
			_ = f.Value.Set(strconv.Itoa(minParallel))
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// document is the catalog: an image costs 3 cents, a second of video 10 cents.
const document = `
models:
  - id: easel-1
    kind: image
    price: {1K: 0.03, 2K: 0.05}
    ratios: ["1:1", "16:9"]
    max_images: 4
    max_references: 4
  - id: reel-1
    kind: video
    price: {720p: 0.10}
    durations: [5, 10]
    ratios: ["16:9"]
    max_references: 2
lines:
  - id: first
    provider: script
    models: {easel-1: vendor-easel, reel-1: vendor-reel}
    max_concurrent: 2
    timeouts: {total: 20s}
  - id: second
    provider: script
    models: {easel-1: vendor-easel, reel-1: vendor-reel}
    priority: 2
    max_concurrent: 2
    timeouts: {total: 20s}
`

// testNode is a node of a cluster.
type testNode struct {
	t      testing.TB
	db     *store.DB
	self   *node.Node
	ledger *ledger.Ledger
	jobs   *Jobs
	ctx    context.Context
	stop   context.CancelFunc
	ended  bool
	loops  sync.WaitGroup

	lines   *line.Lines
	watcher *catalog.Watcher
}

// cluster is the database, media folder and account of a test.
type cluster struct {
	t          testing.TB
	url        string
	db         *store.DB // for queries by the test
	folder     string
	generators map[string]chatcall.Adapter
	account    string
	key        string
	providers  map[string]catalog.Provider
	edit       func(*Options)
}

// newCluster creates a database with a catalog and an account with 100 USD and a key.
func newCluster(t testing.TB, url string, generators map[string]chatcall.Adapter) *cluster {
	t.Helper()
	c := &cluster{t: t, url: url, db: storetest.Open(t, url, store.Options{}), folder: filepath.Join(t.TempDir(), "media"),
		generators: generators,
		providers:  map[string]catalog.Provider{"script": {Kinds: []catalog.Kind{catalog.KindImage, catalog.KindVideo}}}}
	c.apply(document)
	c.account, c.key = c.open(100 * money.USD)
	return c
}

func (c *cluster) apply(text string) {
	c.t.Helper()
	doc, _, err := catalog.Parse([]byte(text), c.providers)
	if err != nil {
		c.t.Fatal(err)
	}
	c.updateTx(func(tx *store.Tx) error {
		_, err := catalog.ApplyTx(tx, doc)
		return err
	})
}

// viewTx runs fn in a transaction for reads.
func (c *cluster) viewTx(fn func(tx *store.Tx) error) {
	c.t.Helper()
	storetest.View(c.t, c.db, fn)
}

// updateTx runs fn in a transaction for writes.
func (c *cluster) updateTx(fn func(tx *store.Tx) error) {
	c.t.Helper()
	storetest.Update(c.t, c.db, fn)
}

// oneLineCluster returns a cluster with the catalog oneLine and a node.
func oneLineCluster(t testing.TB, url string, first chatcall.Adapter) (*cluster, *testNode) {
	t.Helper()
	c := newCluster(t, url, map[string]chatcall.Adapter{"first": first})
	c.apply(oneLine)
	return c, c.idleNode()
}

// twoLineCluster returns a cluster with the catalog document and a node.
func twoLineCluster(t testing.TB, url string, first, second chatcall.Adapter) (*cluster, *testNode) {
	t.Helper()
	c := newCluster(t, url, map[string]chatcall.Adapter{"first": first, "second": second})
	return c, c.idleNode()
}

// start submits a job and calls Start.
func (c *cluster) start(n *testNode, model string, count int64) (id string) {
	c.t.Helper()
	id = c.submit(n, c.submission(n, model, count))
	n.step(n.jobs.Start)
	return id
}

// open creates an account with a balance and a key, and returns their ids.
func (c *cluster) open(balance money.Amount) (accountID, keyID string) {
	c.t.Helper()
	c.updateTx(func(tx *store.Tx) error {
		a, err := account.CreateTx(tx, account.NewAccount{Name: "somebody"})
		if err != nil {
			return err
		}
		if _, err := ledger.CreditTx(tx, a.ID, balance, ""); err != nil {
			return err
		}
		k, _, err := account.CreateKeyTx(tx, a.ID, account.KeySettings{})
		accountID, keyID = a.ID, k.ID
		return err
	})
	return accountID, keyID
}

// node starts a node with all its loops.
func (c *cluster) node() *testNode {
	c.t.Helper()
	n := c.idleNode()
	for _, run := range []func(context.Context){n.watcher.Run, n.ledger.Run, n.lines.Run, n.jobs.Run} {
		n.loops.Go(func() { run(n.ctx) })
	}
	return n
}

// idleNode returns a node without loops. The test calls the steps of Run, and workers run.
func (c *cluster) idleNode() *testNode {
	c.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(c.t.Context()))
	db := storetest.Open(c.t, c.url, store.Options{})
	n := &testNode{t: c.t, db: db, ctx: ctx, stop: stop}
	log := slog.New(slog.NewTextHandler(testWriter{c.t}, &slog.HandlerOptions{Level: slog.LevelError}))
	self, err := node.Join(ctx, node.Options{DB: db, Lease: time.Second, Log: log})
	if err != nil {
		c.t.Fatal(err)
	}
	n.self, n.ledger = self, ledger.New(ledger.Options{DB: db, Node: self, QueueWait: 10 * time.Second, Log: log})
	if err := n.ledger.Start(ctx); err != nil {
		c.t.Fatal(err)
	}
	n.watcher = catalog.NewWatcher(catalog.WatcherOptions{DB: db, Providers: c.providers,
		Lookup: func(string) (string, bool) { return "", false }, Log: log, Interval: 50 * time.Millisecond})
	if err := n.watcher.Refresh(ctx); err != nil {
		c.t.Fatal(err)
	}
	n.lines = line.New(line.Options{
		Open:    func(target upstream.Target) (chatcall.Adapter, error) { return c.generators[target.Line], nil },
		Catalog: n.watcher, DB: db, Node: self, Log: log,
	})
	files, err := media.Open(ctx, media.Options{DB: db, Location: "file:" + c.folder, Base: "http://127.0.0.1/media",
		Retention: time.Hour, Log: log,
		Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		c.t.Fatal(err)
	}
	hooks := webhook.New(webhook.Options{DB: db, Guard: egress.New(nil), Node: self})
	o := Options{DB: db, Ledger: n.ledger, Node: self, Lines: n.lines, Catalog: n.watcher, Media: files, Webhooks: hooks, Log: log}
	if c.edit != nil {
		c.edit(&o)
	}
	n.jobs = New(o)
	n.jobs.stopWait, n.jobs.pollPause, n.jobs.fetchPause = 20*time.Millisecond, 10*time.Millisecond, 5*time.Millisecond
	n.jobs.life = newLifetime(ctx, ctx)
	c.t.Cleanup(n.end)
	return n
}

// kill stops a node like a crash. Calls in flight fail, and the rows of the node's jobs stay.
func (n *testNode) kill() {
	n.stop()
	n.loops.Wait()
	n.jobs.running.Wait()
}

// end stops a node. Later calls are no-ops.
func (n *testNode) end() {
	if n.ended {
		return
	}
	n.ended = true
	n.kill()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.ledger.Close(ctx); err != nil {
		n.t.Errorf("close the ledger: %v", err)
	}
}

// step calls a step of Run on an idle node.
func (n *testNode) step(fn func(context.Context) error) {
	n.t.Helper()
	if err := fn(n.ctx); err != nil {
		n.t.Fatal(err)
	}
}

// runJobs calls Start and waits for the workers.
func (n *testNode) runJobs() {
	n.t.Helper()
	n.step(n.jobs.Start)
	n.jobs.running.Wait()
}

// eachURL runs a parallel subtest on both databases.
func eachURL(t *testing.T, name string, test func(t *testing.T, url string)) {
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		storetest.EachURL(t, test)
	})
}

// oneAndTwoNodes runs test with one node on both databases and with two nodes on PostgreSQL.
func oneAndTwoNodes(t *testing.T, test func(t *testing.T, url string, nodes int)) {
	eachURL(t, "one node", func(t *testing.T, url string) { test(t, url, 1) })
	t.Run("two nodes", func(t *testing.T) {
		t.Parallel()
		test(t, storetest.PostgreSQL(t), 2)
	})
}

// testWriter writes to the test's log.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// submission returns a valid submission.
func (c *cluster) submission(n *testNode, model string, count int64) Submission {
	c.t.Helper()
	s := n.jobs.opts.Catalog.Current()
	m, ok := s.Model(model)
	if !ok {
		c.t.Fatalf("no model %s", model)
	}
	plan := catalog.Plan{Tier: m.Tiers[0].Name, Ratio: m.Ratios[0], Width: 16, Height: 9, Count: count}
	endpoint := "/v1/images/generations"
	if m.Kind == catalog.KindVideo {
		plan.Seconds, endpoint = 5, "/v1/videos/generations"
	}
	return Submission{Request: id.New("req_"), Account: c.account, Key: c.key, KeyVersion: c.keyVersion(c.key), Endpoint: endpoint,
		Snapshot: s, Model: m, Plan: plan,
		Prompt: "a boat", Job: NewID(), Received: time.Now()}
}

// keyVersion returns the version of a key's row.
func (c *cluster) keyVersion(key string) int64 {
	c.t.Helper()
	var version int64
	c.viewTx(func(tx *store.Tx) error {
		keys, err := ledger.KeysTx(tx, []string{key})
		version = keys[key].Version
		return err
	})
	return version
}

// submit submits a job and returns the job's id.
func (c *cluster) submit(n *testNode, s Submission) string {
	c.t.Helper()
	body, err := n.jobs.Submit(c.t.Context(), s)
	if err != nil {
		c.t.Fatalf("submit: %v", err)
	}
	var b struct{ ID, Object, Status, Model string }
	if err := json.Unmarshal(body, &b); err != nil || b.Status != "queued" || b.Model != s.Model.ID ||
		b.Object != string(s.Model.Kind)+".generation.job" {
		c.t.Fatalf("Submit returned %s, want a queued job", body)
	}
	return b.ID
}

// jobBody is the public body of a job.
type jobBody struct {
	ID, Status, Model string
	Created           int64
	Position          *int64 `json:"queue_position"`
	ETA               *int64 `json:"eta_seconds"`
	Data              []struct{ URL string }
	Usage             map[string]any
	Error             *struct {
		Message, Type, Code string
		Param               *string
	}
}

func (c *cluster) poll(n *testNode, kind, id string) jobBody {
	c.t.Helper()
	body, err := n.jobs.Body(c.t.Context(), c.account, kind, id)
	if err != nil {
		c.t.Fatalf("poll: %v", err)
	}
	return parse(c.t, body)
}

func parse(t testing.TB, body []byte) (s jobBody) {
	t.Helper()
	if err := json.Unmarshal(body, &s); err != nil {
		t.Errorf("decode the body %s: %v", body, err)
	}
	return s
}

// await waits until a job's body meets a condition.
func (c *cluster) await(n *testNode, kind, id string, met func(jobBody) bool) jobBody {
	c.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := c.poll(n, kind, id)
		if met(s) {
			return s
		}
		select {
		case <-deadline:
			c.t.Fatalf("timed out waiting for job %s: body %+v, view %+v", id, s, c.view(id))
		case <-tick.C:
		}
	}
}

// final reports whether the job has ended.
func final(s jobBody) bool { return s.Status == row.StatusSucceeded || s.Status == row.StatusFailed }

// view returns the operator's view.
func (c *cluster) view(id string) (v View) {
	c.t.Helper()
	c.viewTx(func(tx *store.Tx) (err error) {
		v, err = GetTx(tx, id)
		return err
	})
	return v
}

// checkStatus polls an image job and checks its status.
func (c *cluster) checkStatus(n *testNode, id, want, when string) {
	c.t.Helper()
	if s := c.poll(n, upstream.KindImage, id); s.Status != want {
		c.t.Errorf("%s: the job is %+v, want %s", when, s, want)
	}
}

// checkFailed polls an image job and checks its error.
func (c *cluster) checkFailed(n *testNode, id string, want fault.Code, when string) {
	c.t.Helper()
	if s := c.poll(n, upstream.KindImage, id); s.Status != row.StatusFailed || s.Error.Code != string(want) {
		c.t.Errorf("%s: the job is %+v, want failed with %s", when, s, want)
	}
}

// audit runs the audit and checks the account's total charges.
func (c *cluster) audit(charged money.Amount) {
	c.t.Helper()
	report, err := audit.Run(context.WithoutCancel(c.t.Context()), c.db, proof.AuditTx)
	if err != nil {
		c.t.Fatal(err)
	}
	if !report.OK {
		c.t.Errorf("the audit found differences: %+v", report.Differences)
	}
	err = c.db.View(context.WithoutCancel(c.t.Context()), func(tx *store.Tx) error {
		u, err := ledger.UsageTx(tx, c.account)
		if err == nil && u.Total.Cost != charged {
			c.t.Errorf("the account was charged %s, want %s", u.Total.Cost, charged)
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// startAll calls Start twice on each node at the same time.
func startAll(t *testing.T, nodes []*testNode) {
	var wg sync.WaitGroup
	for _, n := range nodes {
		for range 2 {
			wg.Go(func() {
				if err := n.jobs.Start(n.ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
}
