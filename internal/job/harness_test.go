package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	flags "flag"
	"fmt"
	"image"
	"image/png"
	"io"
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
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/webhook"
)

// atOnce is how many of these tests run at a time, at least: most of what they
// do is waiting.
const atOnce = 8

func TestMain(m *testing.M) {
	flags.Parse()
	if f := flags.Lookup("test.parallel"); f != nil {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && n < atOnce {
			_ = f.Value.Set(strconv.Itoa(atOnce)) // a number: it is taken
		}
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// document is the catalog of these tests: an image costs 3 cents, a second of
// video 10.
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

// generator is a line for tests. Its functions may be changed between submissions;
// nil ones do well.
type generator struct {
	chatcall.NoChat
	blocks bool
	submit func(n int, w jobcall.Task) (*jobcall.TaskStatus, error)
	poll   func(n int, ticket string) (*jobcall.TaskStatus, error)
	fetch  func(n int, r jobcall.Result) (*jobcall.Download, error)
	find   func(w jobcall.Task) (string, error)
	// hold is called at the beginning of a "submit", "poll" or "fetch" and may
	// wait; its error breaks the connection.
	hold func(ctx context.Context, step string) error

	mu                     sync.Mutex
	submitted              []jobcall.Task
	polls, fetches, atOnce int
	most                   int // the most works at a time
	cancelled              []string
}

func (m *generator) ParamRule(jobcall.Task) jobcall.ParamRule {
	return jobcall.AllBut().Roles("last_frame")
}

func (m *generator) Blocks(jobcall.Task) bool { return m.blocks }

func (m *generator) Submit(ctx context.Context, w jobcall.Task) (*jobcall.TaskStatus, error) {
	m.mu.Lock()
	m.submitted = append(m.submitted, w)
	n := len(m.submitted)
	m.atOnce++
	m.most = max(m.most, m.atOnce)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.atOnce--
		m.mu.Unlock()
	}()
	if err := m.wait(ctx, "submit"); err != nil {
		return nil, upstream.LostAnswer(ctx, err)
	}
	if m.submit != nil {
		made, err := m.submit(n, w)
		if made != nil || err != nil {
			return made, err
		}
	}
	if m.blocks {
		return &jobcall.TaskStatus{Done: true, Results: pictures(w.Count)}, nil
	}
	return &jobcall.TaskStatus{Ticket: fmt.Sprintf("ticket-%d", n)}, nil
}

func (m *generator) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	m.mu.Lock()
	m.polls++
	n := m.polls
	m.mu.Unlock()
	if err := m.wait(ctx, "poll"); err != nil {
		return nil, later(err)
	}
	if m.poll != nil {
		made, err := m.poll(n, ticket)
		if made != nil || err != nil {
			return made, err
		}
	}
	var results []jobcall.Result
	for i := range w.Count {
		results = append(results, jobcall.Result{Ref: fmt.Sprintf("%s/%d", ticket, i)})
	}
	return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
}

func (m *generator) Fetch(ctx context.Context, w jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	m.mu.Lock()
	m.fetches++
	n := m.fetches
	m.mu.Unlock()
	if err := m.wait(ctx, "fetch"); err != nil {
		return nil, later(err)
	}
	if m.fetch != nil {
		file, err := m.fetch(n, r)
		if file != nil || err != nil {
			return file, err
		}
	}
	raw := picture()
	if w.Kind == upstream.KindVideo {
		raw = clip()
	}
	return &jobcall.Download{Body: io.NopCloser(bytes.NewReader(raw)), Size: int64(len(raw))}, nil
}

func (m *generator) Cancel(ctx context.Context, w jobcall.Task, ticket string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancelled = append(m.cancelled, ticket)
	return nil
}

func (m *generator) wait(ctx context.Context, step string) error {
	if m.hold == nil {
		return nil
	}
	return m.hold(ctx, step)
}

// later is the failure of a poll or a download that says nothing of the work.
func later(err error) *upstream.JobFailure {
	return upstream.FailJob(upstream.Fail(fault.UpstreamConnectionError, err), fault.UpstreamError, upstream.NextPoll)
}

// stuck is a hold that keeps one step waiting until its context ends, and tells
// reached of it.
func stuck(at string, reached chan<- struct{}) func(context.Context, string) error {
	return func(ctx context.Context, step string) error {
		if step != at {
			return nil
		}
		select {
		case reached <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// gate is a hold that lets steps of one name pass one by one, as free is fed.
func gate(at string, free <-chan struct{}) func(context.Context, string) error {
	return func(ctx context.Context, step string) error {
		if step != at {
			return nil
		}
		select {
		case <-free:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// finding is a generator whose provider can be asked for lost submissions.
type finding struct{ *generator }

func (f finding) Find(ctx context.Context, w jobcall.Task) (string, error) { return f.find(w) }

func (m *generator) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.submitted)
}

// picture is a small valid PNG.
func picture() []byte {
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// clip begins like an MP4.
func clip() []byte {
	return append([]byte("\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isommp42"), bytes.Repeat([]byte{0}, 64)...)
}

func pictures(n int) []jobcall.Result {
	var results []jobcall.Result
	for range n {
		results = append(results, jobcall.Result{Data: picture(), Type: "image/png"})
	}
	return results
}

// failure is a scripted one.
func failure(job fault.Code, next upstream.Next) *upstream.JobFailure {
	return upstream.FailJob(upstream.Fail(fault.UpstreamUnavailable, errors.New("scripted")), job, next)
}

// lost is the failure of a submission whose answer did not arrive.
func lost(next upstream.Next) *upstream.JobFailure {
	t := failure(fault.UpstreamError, next)
	t.Lost = true
	return t
}

// refusedBy is the trace of a job that a line has refused, as it is stored.
func refusedBy(line string) string {
	var t row.Trace
	t.Begin(line, 0)
	t.Ended(failure(fault.UpstreamError, upstream.NextLine), 1)
	return row.Text(t)
}

// testNode is one node of a gateway with jobs.
type testNode struct {
	t     testing.TB
	db    *store.DB
	self  *node.Node
	books *ledger.Ledger
	jobs  *Jobs
	ctx   context.Context
	stop  context.CancelFunc
	ended bool
	loops sync.WaitGroup

	lines   *line.Lines
	watcher *catalog.Watcher
}

// house is what nodes share.
type house struct {
	t          testing.TB
	url        string
	db         *store.DB // for looking
	folder     string
	generators map[string]chatcall.Adapter
	account    string
	key        string
	providers  map[string]catalog.Provider
	edit       func(*Options)
}

// newHouse makes a database with a catalog, an account with 100 USD and a key.
func newHouse(t testing.TB, url string, generators map[string]chatcall.Adapter) *house {
	t.Helper()
	h := &house{t: t, url: url, db: storetest.Open(t, url, store.Options{}), folder: filepath.Join(t.TempDir(), "media"),
		generators: generators,
		providers:  map[string]catalog.Provider{"script": {Kinds: []catalog.Kind{catalog.KindImage, catalog.KindVideo}}}}
	h.apply(document)
	h.account, h.key = h.open(100 * money.USD)
	return h
}

func (h *house) apply(text string) {
	h.t.Helper()
	doc, _, err := catalog.Parse([]byte(text), h.providers)
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.db.Update(h.t.Context(), func(tx *store.Tx) error {
		_, err := catalog.ApplyTx(tx, doc)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
}

// open opens an account with a balance and one key.
func (h *house) open(balance money.Amount) (owner, key string) {
	h.t.Helper()
	err := h.db.Update(h.t.Context(), func(tx *store.Tx) error {
		a, err := account.CreateTx(tx, account.Opening{Name: "somebody"})
		if err != nil {
			return err
		}
		if _, err := ledger.CreditTx(tx, a.ID, balance, ""); err != nil {
			return err
		}
		k, _, err := account.CreateKeyTx(tx, a.ID, account.KeySettings{})
		owner, key = a.ID, k.ID
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return owner, key
}

// node starts a node; it stops with the test, or by kill.
func (h *house) node() *testNode {
	h.t.Helper()
	n := h.still()
	for _, run := range []func(context.Context){n.watcher.Run, n.books.Run, n.lines.Run, n.jobs.Run} {
		n.loops.Go(func() { run(n.ctx) })
	}
	return n
}

// still makes a node that does nothing by itself: its steps are the test's, and
// its workers may run.
func (h *house) still() *testNode {
	h.t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(h.t.Context()))
	db := storetest.Open(h.t, h.url, store.Options{})
	n := &testNode{t: h.t, db: db, ctx: ctx, stop: stop}
	log := slog.New(slog.NewTextHandler(testWriter{h.t}, &slog.HandlerOptions{Level: slog.LevelError}))
	self, err := node.Join(ctx, node.Options{DB: db, Lease: time.Second, Log: log})
	if err != nil {
		h.t.Fatal(err)
	}
	n.self, n.books = self, ledger.New(ledger.Options{DB: db, Node: self, QueueWait: 10 * time.Second, Log: log})
	if err := n.books.Start(ctx); err != nil {
		h.t.Fatal(err)
	}
	n.watcher = catalog.NewWatcher(catalog.WatcherOptions{DB: db, Providers: h.providers,
		Lookup: func(string) (string, bool) { return "", false }, Log: log, Interval: 50 * time.Millisecond})
	if err := n.watcher.Refresh(ctx); err != nil {
		h.t.Fatal(err)
	}
	n.lines = line.New(line.Options{
		Open:    func(target upstream.Target) (chatcall.Adapter, error) { return h.generators[target.Line], nil },
		Current: n.watcher.Current, DB: db, Epoch: self.Epoch, Log: log,
	})
	files, err := media.Open(ctx, media.Options{DB: db, Location: "file:" + h.folder, Base: "http://127.0.0.1/media",
		Retention: time.Hour, Log: log,
		Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		h.t.Fatal(err)
	}
	hooks := webhook.New(webhook.Options{DB: db, Guard: egress.New(nil), Epoch: self.Epoch})
	o := Options{DB: db, Ledger: n.books, Node: self, Lines: n.lines, Catalog: n.watcher, Media: files, Webhooks: hooks, Log: log}
	if h.edit != nil {
		h.edit(&o)
	}
	n.jobs = New(o)
	n.jobs.linger, n.jobs.pollPause, n.jobs.fetchPause = 20*time.Millisecond, 10*time.Millisecond, 5*time.Millisecond
	n.jobs.life = newLifetime(ctx, ctx)
	h.t.Cleanup(n.end)
	return n
}

// kill stops a node as its death would: it says nothing to anybody, and what it
// looks after stays as it is. Its calls break off.
func (n *testNode) kill() {
	n.stop()
	n.loops.Wait()
	n.jobs.running.Wait()
}

// end stops a node; calls after the first do nothing.
func (n *testNode) end() {
	if n.ended {
		return
	}
	n.ended = true
	n.kill()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.books.Close(ctx); err != nil {
		n.t.Errorf("close the ledger: %v", err)
	}
}

// step makes a step of a still node.
func (n *testNode) step(what func(context.Context) error) {
	n.t.Helper()
	if err := what(n.ctx); err != nil {
		n.t.Fatal(err)
	}
}

// testWriter writes to the test's log.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

// submission makes a good submission to a model.
func (h *house) submission(n *testNode, model string, count int64) Submission {
	h.t.Helper()
	s := n.jobs.opts.Catalog.Current()
	m, ok := s.Model(model)
	if !ok {
		h.t.Fatalf("no model %s", model)
	}
	plan := catalog.Plan{Tier: m.Tiers[0].Name, Ratio: m.Ratios[0], Width: 16, Height: 9, Count: count}
	endpoint := "/v1/images/generations"
	if m.Kind == catalog.KindVideo {
		plan.Seconds, endpoint = 5, "/v1/videos/generations"
	}
	return Submission{Request: id.New("req_"), Account: h.account, Key: h.key, KeyVersion: h.version(h.key), Endpoint: endpoint, Snapshot: s,
		Model: m, Plan: plan,
		Prompt: "a boat", Job: NewID(), Received: time.Now()}
}

func (h *house) version(key string) int64 {
	h.t.Helper()
	var version int64
	err := h.db.View(h.t.Context(), func(tx *store.Tx) error {
		keys, err := ledger.KeysTx(tx, []string{key})
		version = keys[key].Version
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return version
}

// submit submits and returns the job's id.
func (h *house) submit(n *testNode, s Submission) string {
	h.t.Helper()
	body, err := n.jobs.Submit(h.t.Context(), s)
	if err != nil {
		h.t.Fatalf("submit: %v", err)
	}
	var b struct{ ID, Object, Status, Model string }
	if err := json.Unmarshal(body, &b); err != nil || b.Status != "queued" || b.Model != s.Model.ID ||
		b.Object != string(s.Model.Kind)+".generation.job" {
		h.t.Fatalf("202 body %s", body)
	}
	return b.ID
}

// shown is a job's body as tests read it.
type shown struct {
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

func (h *house) poll(n *testNode, kind, id string) shown {
	h.t.Helper()
	body, err := n.jobs.Body(h.t.Context(), h.account, kind, id)
	if err != nil {
		h.t.Fatalf("poll: %v", err)
	}
	return parse(h.t, body)
}

func parse(t testing.TB, body []byte) (s shown) {
	t.Helper()
	if err := json.Unmarshal(body, &s); err != nil {
		t.Errorf("%v in %s", err, body)
	}
	return s
}

// await waits until a job shows what is asked for.
func (h *house) await(n *testNode, kind, id string, until func(shown) bool) shown {
	h.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		s := h.poll(n, kind, id)
		if until(s) {
			return s
		}
		select {
		case <-deadline:
			v, _, _ := h.view(id)
			h.t.Fatalf("job %s still shows %+v; %+v", id, s, v)
		case <-tick.C:
		}
	}
}

func final(s shown) bool { return s.Status == row.StatusSucceeded || s.Status == row.StatusFailed }

// view is the operator's view.
func (h *house) view(id string) (v View, ok bool, err error) {
	err = h.db.View(h.t.Context(), func(tx *store.Tx) (err error) {
		v, err = GetTx(tx, id)
		return err
	})
	return v, err == nil, err
}

// audit checks the books and the jobs, and what has been charged in all.
func (h *house) audit(charged money.Amount) {
	h.t.Helper()
	report, err := audit.Run(context.WithoutCancel(h.t.Context()), h.db, proof.AuditTx)
	if err != nil {
		h.t.Fatal(err)
	}
	if !report.OK {
		h.t.Errorf("the books differ: %+v", report.Differences)
	}
	err = h.db.View(context.WithoutCancel(h.t.Context()), func(tx *store.Tx) error {
		u, err := ledger.UsageTx(tx, h.account)
		if err == nil && u.Total.Cost != charged {
			h.t.Errorf("charged %s, want %s", u.Total.Cost, charged)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// startAll runs the step that starts jobs on all nodes at once, twice on each.
func startAll(t *testing.T, nodes []*testNode) {
	var group sync.WaitGroup
	for _, n := range nodes {
		for range 2 {
			group.Go(func() {
				if err := n.jobs.Start(n.ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
}
