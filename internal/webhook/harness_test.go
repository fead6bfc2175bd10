package webhook

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.uber.org/goleak"

	"tollgate/internal/egress"
	"tollgate/internal/ledger"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

// loopback lets a guard reach the test's own receivers.
var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// schedule is the default of the settings.
var schedule = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 6 * time.Hour}

// testEnv is a database with a clock, and nodes that share the database.
type testEnv struct {
	t     *testing.T
	db    *store.DB
	clock *storetest.Clock
}

// each runs a test with an empty database on each engine.
func each(t *testing.T, test func(t *testing.T, env *testEnv)) {
	t.Helper()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) { test(t, &testEnv{t: t, db: db, clock: c}) })
}

// testNode is one node's Webhooks. Tests call its rounds.
type testNode struct {
	*Webhooks
	t     *testing.T
	epoch string
}

// node registers a node.
func (env *testEnv) node(epoch string, change ...func(*Options)) *testNode {
	env.t.Helper()
	self, err := node.Begin(context.Background(), node.Options{DB: env.db}, epoch)
	if err != nil {
		env.t.Fatal(err)
	}
	opts := Options{DB: env.db, Guard: egress.New(loopback), Retries: schedule, Node: self, Now: env.clock.Now}
	for _, c := range change {
		c(&opts)
	}
	n := &testNode{Webhooks: New(opts), t: env.t, epoch: epoch}
	env.t.Cleanup(n.workers.Wait)
	return n
}

// disable disables or enables an account, and opens the account first if needed.
func (env *testEnv) disable(account string, disabled bool) {
	env.t.Helper()
	env.update(func(tx *store.Tx) error {
		states, err := ledger.AccountsTx(tx, []string{account})
		if err == nil && len(states) == 0 {
			err = ledger.OpenAccountTx(tx, account, 0)
		}
		if err != nil {
			return err
		}
		return ledger.ChangeAccountTx(tx, account, ledger.AccountChange{Disabled: &disabled})
	})
}

// step runs one round: it records finished attempts and begins due attempts.
func (n *testNode) step() {
	n.t.Helper()
	if _, err := n.runRound(context.Background(), context.Background()); err != nil {
		n.t.Fatal(err)
	}
}

// settle runs rounds until no delivery is due.
func (n *testNode) settle() {
	n.t.Helper()
	for range 1000 {
		n.step()
		n.workers.Wait()
		n.mu.Lock()
		running := len(n.inFlight)
		n.mu.Unlock()
		if running == 0 {
			return
		}
	}
	n.t.Fatal("attempts still run after 1000 rounds")
}

// inFlightCount returns the number of running attempts.
func (n *testNode) inFlightCount() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.inFlight)
}

// emit commits events in a transaction like the ledger's.
func (env *testEnv) emit(add func(q *store.Batch, nowMS int64)) {
	env.t.Helper()
	env.transaction(true, add)
}

// transaction writes events in a transaction and commits it or rolls it back.
func (env *testEnv) transaction(commit bool, add func(q *store.Batch, nowMS int64)) {
	env.t.Helper()
	s, err := env.db.Session(context.Background())
	if err != nil {
		env.t.Fatal(err)
	}
	q := env.db.NewBatch()
	q.Begin("500ms", "2s")
	add(q, env.clock.Now().UnixMilli())
	if commit {
		q.Commit()
	}
	if err := s.Run(context.Background(), q); err != nil {
		env.t.Fatal(err)
	}
	if err := s.Close(commit); err != nil {
		env.t.Fatal(err)
	}
}

// callback emits the end of a job with a callback.
func (env *testEnv) callback(n *testNode, account, address string) {
	env.t.Helper()
	env.emit(func(q *store.Batch, nowMS int64) {
		n.EmitJob(q, nowMS, JobEnd{Account: account, Type: ImageCompleted, Body: []byte(jobBody), Callback: address})
	})
}

const jobBody = `{"id":"job_1","object":"image.job",  "status":"succeeded","data":[{"url":"https://example.com/ü<&>.png"}]}`

// endpoint sets an account's endpoint and returns its secret.
func (env *testEnv) endpoint(n *testNode, account, address string, events ...string) string {
	env.t.Helper()
	var e Endpoint
	env.update(func(tx *store.Tx) (err error) {
		e, err = n.PutEndpointTx(tx, account, Endpoint{URL: address, Events: events})
		return err
	})
	return e.Secret
}

func (env *testEnv) update(fn func(tx *store.Tx) error) {
	env.t.Helper()
	storetest.Update(env.t, env.db, fn)
}

// secret returns an account's secret.
func (env *testEnv) secret(account string) string {
	env.t.Helper()
	var e Endpoint
	env.update(func(tx *store.Tx) (err error) { e, err = EndpointTx(tx, account); return err })
	return e.Secret
}

// log returns the log of an account, newest first.
func (env *testEnv) log(account string) []Delivery {
	env.t.Helper()
	var list []Delivery
	all := New(Options{DB: env.db, Guard: egress.New(nil), Retention: 1 << 62}) // includes expired entries before their deletion
	env.update(func(tx *store.Tx) (err error) { list, _, err = all.DeliveriesTx(tx, account, "", 10_000); return err })
	return list
}

// count returns the number of rows of a table.
func (env *testEnv) count(table string) (n int) {
	env.t.Helper()
	env.update(func(tx *store.Tx) error { return tx.QueryRow(`SELECT COUNT(*) FROM ` + table).Scan(&n) })
	return n
}

func (env *testEnv) exec(query string, args ...any) {
	env.t.Helper()
	env.update(func(tx *store.Tx) error { _, err := tx.Exec(query, args...); return err })
}

// deliver returns a node after its first attempt to deliver a callback of acct_1, and the receiver.
func (env *testEnv) deliver(answer http.HandlerFunc) (*testNode, *receiver) {
	env.t.Helper()
	n, r := env.node("a"), newReceiver(env.t, answer)
	env.callback(n, "acct_1", r.URL)
	n.settle()
	return n, r
}

// checkDelivery checks the newest delivery of an account.
func (env *testEnv) checkDelivery(account, state string, attempts int) {
	env.t.Helper()
	if d := env.log(account)[0]; d.State != state || len(d.Attempts) != attempts {
		env.t.Errorf("the delivery is %+v, want %s with %d attempts", d, state, attempts)
	}
}

// checkQueueIsEmpty checks that the queue and the receivers have no rows.
func (env *testEnv) checkQueueIsEmpty() {
	env.t.Helper()
	if queued, receivers := env.count("webhook_queue"), env.count("webhook_receiver"); queued != 0 || receivers != 0 {
		env.t.Errorf("the queue has %d rows and there are %d receivers, want none", queued, receivers)
	}
}

// kill declares a node dead, as the ledger's sweep does.
func (env *testEnv) kill(epoch string) {
	env.t.Helper()
	if dead, err := node.Fence(context.Background(), env.db, epoch, 0); err != nil || !dead {
		env.t.Fatalf("Fence(%s) = %v, %v", epoch, dead, err)
	}
}

// request is one request to a receiver.
type request struct {
	id, timestamp, signature, path, body string
	header                               http.Header
}

// receiver is a server that records requests and answers with a given handler.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	posts  []request
	answer http.HandlerFunc // if nil, the receiver answers 200
	now    int              // present number of concurrent requests
	top    int              // highest number of concurrent requests
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	r.mu.Lock()
	r.posts = append(r.posts, request{
		id: req.Header.Get("webhook-id"), timestamp: req.Header.Get("webhook-timestamp"), signature: req.Header.Get("webhook-signature"),
		path: req.URL.String(), body: string(body), header: req.Header,
	})
	r.now++
	r.top = max(r.top, r.now)
	answer := r.answer
	r.mu.Unlock()
	defer func() { r.mu.Lock(); r.now--; r.mu.Unlock() }()
	if answer != nil {
		answer(w, req)
	}
}

// respond sets the handler for further requests.
func (r *receiver) respond(answer http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// requests returns the requests so far.
func (r *receiver) requests() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]request(nil), r.posts...)
}

// verify checks a request's signature with the official library, and its content type.
func verify(t *testing.T, secret string, p request) {
	t.Helper()
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := hook.VerifyIgnoringTimestamp([]byte(p.body), p.header); err != nil {
		t.Errorf("verify the signature of %s: %v", p.id, err)
	}
	if p.header.Get("Content-Type") != "application/json" {
		t.Errorf("the content type is %q, want application/json", p.header.Get("Content-Type"))
	}
}

// status returns a handler that answers with a status code.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// manyAddresses listens on all addresses of this machine, so that each 127.x.y.z is a separate receiver,
// and returns the port.
func manyAddresses(t *testing.T, handler http.Handler) string {
	t.Helper()
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	s.Start()
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// hostOf returns the address of the n-th receiver on a port of manyAddresses.
func hostOf(n int, port string) string {
	return fmt.Sprintf("http://127.%d.%d.%d:%s/hook", 1+n/62500, 1+n/250%250, 1+n%250, port)
}
