package line

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/alert"
	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// cluster is a set of nodes on one database, with a provider that counts its calls.
type cluster struct {
	*testing.T
	db    *store.DB
	s     *catalog.Snapshot
	nodes []*member

	mu       sync.Mutex
	calls    int
	failure  func(wire.Form) *upstream.Failure // if nil, the provider answers
	alerts   []string
	received chan struct{} // receives a value for each alert
}

// member is one of the nodes, with a separate clock.
type member struct {
	*Lines
	c            *cluster
	p            *prober
	self         *node.Node
	now          time.Time
	disconnected bool          // whether calls to the provider fail
	gate         chan struct{} // if not nil, calls wait for it
	started      chan struct{}
}

func newCluster(t *testing.T, db *store.DB, size int) *cluster {
	doc := &catalog.Document{
		Models: []catalog.Model{{ID: "swift", Kind: catalog.KindChat}, {ID: "deep", Kind: catalog.KindChat}},
		Lines: []catalog.LineSpec{{ID: "a", Provider: "fake", Weight: 1, Enabled: true,
			Models: map[string]string{"swift": "v", "deep": "d"}}},
	}
	c := &cluster{T: t, db: db, received: make(chan struct{}, 100), s: catalog.NewSnapshot(1, doc, map[string]catalog.Provider{
		"fake": {Kinds: []catalog.Kind{catalog.KindChat}, Forms: []wire.Form{wire.FormChat, wire.FormResponses}}},
		func(string) (string, bool) { return "", false })}
	for i := range size {
		// Nodes must not compare their clocks.
		self, err := node.Begin(t.Context(), node.Options{DB: db}, id.New("node_"))
		if err != nil {
			t.Fatal(err)
		}
		m := &member{c: c, self: self, now: time.Unix(1_700_000_000, 0).Add(time.Duration(i) * 1000 * time.Hour)}
		sender := alert.New("http://alerts.test/", alert.Mails{}, slog.New(slog.DiscardHandler), c)
		m.Lines = New(Options{Open: func(upstream.Target) (chatcall.Adapter, error) { return m, nil }, Alerts: sender,
			Catalog: catalog.NewStaticWatcher(c.s), DB: db, Node: self,
			Now: func() time.Time { return m.now }})
		m.p = newProber(m.Lines)
		m.table(c.s)
		go sender.Run(t.Context(), t.Context())
		c.nodes = append(c.nodes, m)
	}
	return c
}

// RoundTrip receives an alert.
func (c *cluster) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	c.mu.Lock()
	c.alerts = append(c.alerts, string(raw))
	c.mu.Unlock()
	c.received <- struct{}{}
	return &http.Response{StatusCode: 204, Body: http.NoBody}, err
}

// Chat answers for the provider.
func (m *member) Chat(_ context.Context, call chatcall.Call) (*chatcall.Response, error) {
	if m.gate != nil {
		m.started <- struct{}{}
		<-m.gate
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.calls++
	if m.disconnected {
		return nil, upstream.Fail(fault.UpstreamConnectionError, errors.New("no route"))
	}
	if m.c.failure != nil {
		if f := m.c.failure(call.Form); f != nil {
			return nil, f
		}
	}
	return &chatcall.Response{ContentType: "application/json",
		Body: io.NopCloser(strings.NewReader(`{"choices":[{"message":{"content":"hi"}}]}`))}, nil
}

// ask sends a request of an account through a node.
func (m *member) ask(account string, form wire.Form) error {
	model, _ := m.c.s.Model("swift")
	_, err := m.Try(context.Background(), RoutingRequest{Snapshot: m.c.s, Model: model, Form: form, Account: account},
		func(ctx context.Context, attempt *Attempt) error {
			answer, err := attempt.Chat(ctx, chatcall.Call{Form: attempt.Form})
			if err != nil {
				return err
			}
			return answer.Body.Close()
		})
	return err
}

// fail sends n failing requests of account one through a node.
func (m *member) fail(n int) {
	for range n {
		_ = m.ask("one", wire.FormChat)
	}
}

// takeCalls returns the number of calls since the last call of takeCalls.
func (c *cluster) takeCalls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.calls
	c.calls = 0
	return n
}

// exchange runs Exchange on all nodes until they agree.
func (c *cluster) exchange() {
	c.Helper()
	for range 2 {
		for _, m := range c.nodes {
			if err := m.Exchange(c.Context()); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// probe runs the due probes of a node.
func (m *member) probe() {
	m.p.step(m.c.Context())
	m.p.running.Wait()
}

// kill declares a node dead.
func (m *member) kill() {
	m.c.Helper()
	if dead, err := node.Fence(m.c.Context(), m.c.db, m.self.Epoch(), 0); err != nil || !dead {
		m.c.Fatal(dead, err)
	}
}

// advance advances the clocks of all nodes.
func (c *cluster) advance(d time.Duration) {
	for _, m := range c.nodes {
		m.now = m.now.Add(d)
	}
}

// probe advances the clock and runs the due probes of all nodes.
func (c *cluster) probe(wait time.Duration) {
	c.Helper()
	c.advance(wait)
	for _, m := range c.nodes {
		m.p.step(c.Context())
	}
	for _, m := range c.nodes {
		m.p.running.Wait()
	}
	c.exchange()
}

// ageRows moves the times of all findings into the past, as if d had passed for the database too.
func (c *cluster) ageRows(d time.Duration) {
	c.Helper()
	storetest.Exec(c.T, c.db, `UPDATE line_finding SET since_ms = since_ms - $1, until_ms = until_ms - $1`, d.Milliseconds())
}

// states returns the state of the line on each node, with the parts that are out or cooling.
func (c *cluster) states() string {
	var all []string
	for _, m := range c.nodes {
		s := m.Statuses()[0]
		words := []string{s.State}
		for _, p := range s.ModelStates {
			if p.State != health.StateInService {
				words = append(words, p.Model+string(p.Form)+":"+p.State)
			}
		}
		all = append(all, strings.Join(words, "+"))
	}
	return strings.Join(slices.Compact(all), " ")
}

// checkAlerts waits for the given alerts and checks that there are no others.
func (c *cluster) checkAlerts(want ...string) {
	c.Helper()
	for {
		c.mu.Lock()
		got := slices.Clone(c.alerts)
		c.mu.Unlock()
		if len(got) < len(want) {
			select {
			case <-c.received:
			case <-time.After(10 * time.Second):
				c.Fatalf("alerts %q, want %q", got, want)
			}
			continue
		}
		ok := len(got) == len(want)
		for i := range want {
			ok = ok && strings.Contains(got[i], want[i])
		}
		if !ok {
			c.Errorf("alerts %q, want %q", got, want)
		}
		return
	}
}

// withThreeNodes runs a test with three nodes on PostgreSQL.
func withThreeNodes(t *testing.T, test func(t *testing.T, c *cluster)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() == store.SQLite { // SQLite has one node; see TestOneNodeSharesNothing
			return
		}
		test(t, newCluster(t, db, 3))
	})
}

func connectionRefused(wire.Form) *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("refused"))
}

// TestDeadProviderIsFoundOnce checks that the other nodes adopt a node's finding without a call of
// the provider, and that all nodes together send one probe at a time and one alert.
func TestDeadProviderIsFoundOnce(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		a := c.nodes[0]
		c.failure = connectionRefused
		for i := range 6 {
			_ = a.ask(fmt.Sprint("account", i%2), wire.FormChat)
		}
		c.probe(0)
		if got := c.states(); got != "circuit_open" || c.takeCalls() > 7 {
			t.Fatalf("states of the nodes %s, want circuit_open after at most 7 calls", got)
		}
		for _, m := range c.nodes {
			if err := m.ask("other", wire.FormChat); fault.Of(err) == nil || c.takeCalls() != 0 {
				t.Errorf("error %v, want an error without a call of the provider", err)
			}
			if wait := m.Statuses()[0].CoolingUntil - m.now.Unix(); wait < 25 || wait > 31 {
				t.Errorf("the node's next probe is in %d s, want 25 to 31", wait)
			}
		}
		c.checkAlerts("circuit_open")
		for range 3 { // 30 s, then twice as long
			c.probe(10 * time.Minute)
			if n := c.takeCalls(); n != 1 {
				t.Errorf("%d probes by three nodes, want 1", n)
			}
		}
		c.failure = nil
		c.probe(10 * time.Minute)
		if got, n := c.states(), c.takeCalls(); got != "half_open" || n != 1 {
			t.Errorf("after a successful probe: states of the nodes %s, %d probes; want half_open and 1", got, n)
		}
		for range 3 {
			if err := c.nodes[1].ask("other", wire.FormChat); err != nil {
				t.Error(err)
			}
		}
		c.exchange()
		if got := c.states(); got != "in_service" {
			t.Errorf("states of the nodes %s, want in_service", got)
		}
		c.checkAlerts("circuit_open", "in_service")
	})
}

// TestEachFindingReachesTheNodes checks that the other nodes adopt findings about pauses,
// credentials, models and forms, and that a resume clears them.
func TestEachFindingReachesTheNodes(t *testing.T) {
	t.Parallel()
	answer := func(status int, body string, header http.Header) func(wire.Form) *upstream.Failure {
		return func(wire.Form) *upstream.Failure { return upstream.Classify(status, "", []byte(body), header) }
	}
	retryAfter := http.Header{"Retry-After": {"40"}}
	for name, tt := range map[string]struct {
		fails func(wire.Form) *upstream.Failure
		state string
	}{
		"a refused credential": {answer(401, `{"error":{"code":"invalid_api_key"}}`, nil), "credentials_out"},
		"a quota":              {answer(429, `{"error":{"code":"insufficient_quota"}}`, nil), "credentials_out"},
		"a missing model":      {answer(404, `{"error":{"code":"model_not_found"}}`, nil), "in_service+swift:model_out"},
		"a missing form": {func(form wire.Form) *upstream.Failure {
			if form == wire.FormResponses {
				return nil
			}
			return upstream.Classify(400, "", []byte(`{"error":{"code":"OperationNotSupported"}}`), nil)
		}, "in_service+swiftchat:form_out"},
		"a rate limit of a model":     {answer(429, `{"error":{"message":"slow"}}`, retryAfter), "in_service+swift:cooling"},
		"a rate limit of the account": {answer(429, `{"error":{"message":"Your account is limited"}}`, retryAfter), "cooling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withThreeNodes(t, func(t *testing.T, c *cluster) {
				c.failure = tt.fails
				fail := func() {
					c.nodes[0].fail(2)
					c.exchange()
					c.probe(0)
					if got := c.states(); got != tt.state {
						t.Errorf("the states on the nodes are %s, want %s", got, tt.state)
					}
					c.takeCalls()
				}
				resume := func() {
					storetest.Update(t, c.db, func(tx *store.Tx) error { return ResumeTx(tx, "a") })
					for _, m := range c.nodes {
						if err := m.Refresh(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
				}
				fail()
				_ = c.nodes[2].ask("one", wire.FormChat)
				if n := c.takeCalls(); n > 0 && name != "a missing form" || name == "a missing form" && n != 1 { // the call uses the other form
					t.Errorf("another node called the provider %d times, want 0, or 1 for a form", n)
				}
				resume()
				fail() // before the nodes have exchanged the end of the first finding
				resume()
				c.exchange()
				if got := c.states(); got != "in_service" {
					t.Errorf("states of the nodes after a resume: %s, want in_service", got)
				}
			})
		})
	}
}

// setTwoKeys gives the line two keys and returns the first.
func (m *member) setTwoKeys() *lineKey {
	k := &lineKey{entry: m.table(m.c.s).entries[0], position: 1, mark: "0123", adapter: m}
	k.entry.keys = []*lineKey{k, {entry: k.entry, position: 2, mark: "4567", adapter: m}}
	return k
}

// TestRefusedKeyReachesTheNodes checks that the other nodes use the next key at once, one node
// probes the refused key, and one alert is sent.
func TestRefusedKeyReachesTheNodes(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		var keys []*lineKey
		for _, m := range c.nodes {
			keys = append(keys, m.setTwoKeys())
		}
		c.nodes[0].confirmRefusal(keys[0], "401: no", true)
		c.exchange()
		for i, k := range keys {
			if record, _ := k.entry.stats.keys.lookup("0123"); !k.entry.stats.keys.confirmed(k) || record.cause != "401: no" {
				t.Errorf("node %d has not adopted the refusal of the key: %+v", i, record)
			}
		}
		c.checkAlerts("key_refused")
		c.probe(6 * time.Minute)
		if n := c.takeCalls(); n != 1 {
			t.Errorf("%d probes by three nodes, want 1", n)
		}
		for i, k := range keys {
			if k.entry.stats.keys.nonEmpty.Load() {
				t.Errorf("node %d has not adopted the acceptance of the key", i)
			}
		}
		c.checkAlerts("key_refused", "key_accepted")
	})
}

// TestLateAlertIsSent checks that an alert is sent even if Exchange writes the refusal of a key
// before the alert is queued.
func TestLateAlertIsSent(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		m := c.nodes[0]
		k := m.setTwoKeys()
		k.entry.stats.keys.add(k, m.Lines.now(), "401: no")
		c.exchange()
		m.alertKey(k, alertKeyRefused, "401: no")
		c.exchange()
		c.checkAlerts("key_refused")
	})
}

// TestOneProbeAtATime checks that all nodes together send one probe at a time, also after the
// probing node dies.
func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		a, b := c.nodes[0], c.nodes[1]
		c.failure = connectionRefused
		a.fail(6)
		c.probe(0)
		c.takeCalls()
		c.advance(time.Minute)
		a.gate, a.started = make(chan struct{}), make(chan struct{})
		a.p.step(t.Context())
		<-a.started
		b.probe()
		if n := c.takeCalls(); n != 0 {
			t.Errorf("%d probes besides the running one, want 0", n)
		}
		a.kill()
		c.failure = nil
		b.probe()
		if n := c.takeCalls(); n != 1 || b.Statuses()[0].State != "half_open" {
			t.Errorf("after the death of the probing node: %d probes, state %s; want 1 and half_open", n, b.Statuses()[0].State)
		}
		close(a.gate)
		a.p.running.Wait()
	})
}

// TestNodeWithBrokenNetwork checks that the findings of a node with a broken network are no longer
// shared after another node finds the line working.
func TestNodeWithBrokenNetwork(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		a, b := c.nodes[0], c.nodes[1]
		a.disconnected = true
		a.fail(6)
		c.probe(0)
		if got := c.states(); got != "circuit_open" {
			t.Fatalf("states of the nodes %s, want circuit_open", got)
		}
		c.advance(time.Minute)
		b.probe()
		c.exchange()
		for range 3 {
			if err := b.ask("two", wire.FormChat); err != nil {
				t.Fatal(err)
			}
		}
		c.exchange()
		a.fail(6)
		a.probe()
		c.exchange()
		if got := c.states(); got != "circuit_open in_service" {
			t.Errorf("states of the nodes %s, want circuit_open in_service", got)
		}
	})
}

// TestNewNodeAdoptsFindingsOfDeadNode checks that a new node adopts the findings of a dead node and
// probes the line.
func TestNewNodeAdoptsFindingsOfDeadNode(t *testing.T) {
	t.Parallel()
	withThreeNodes(t, func(t *testing.T, c *cluster) {
		a := c.nodes[0]
		c.failure = connectionRefused
		a.fail(6)
		a.probe()
		c.nodes = nil
		a.kill()
		c.ageRows(time.Hour) // no node was running
		restarted := newCluster(t, c.db, 1)
		restarted.exchange()
		if got := restarted.states(); got != "circuit_open" {
			t.Errorf("state on a new node %s, want circuit_open", got)
		}
		restarted.probe(0)
		if got, n := restarted.states(), restarted.takeCalls(); got != "half_open" || n != 1 {
			t.Errorf("state on a new node %s after %d probes, want half_open after 1", got, n)
		}
	})
}

// TestFindingsDoNotRepeatPrompts checks that a prompt in a provider's error is redacted in shared
// findings and in the line's status.
func TestFindingsDoNotRepeatPrompts(t *testing.T) {
	t.Parallel()
	const prompt = `{"messages":[{"content":"biopsy of Keller at noon, \u5de5\u5834\u306e\u5834\u6240\u306f\u79d8\u5bc6"}]}`
	for _, leak := range []string{
		"no answer to: biopsy of Keller", "no answer to: BIOPSY OF KELLER AT NOON", "no answer to: biopsyofKelleratnoon",
		`no answer to: biopsy\nof\nKeller`, "no answer to: 工場の場所は秘密",
	} {
		t.Run(leak, func(t *testing.T) {
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				c := newCluster(t, db, 1)
				if db.Dialect() == store.PostgreSQL {
					c = newCluster(t, db, 2)
				}
				c.failure = func(wire.Form) *upstream.Failure { return upstream.Classify(429, "text/plain", []byte(leak), nil) }
				for i := range 6 {
					model, _ := c.s.Model("swift")
					_, _ = c.nodes[0].Try(t.Context(), RoutingRequest{Snapshot: c.s, Model: model, Form: wire.FormChat, Account: fmt.Sprint(i)},
						func(ctx context.Context, attempt *Attempt) error {
							_, err := attempt.Chat(ctx, chatcall.Call{Form: attempt.Form, Body: rawjson.Pieces{[]byte(prompt)}})
							return err
						})
				}
				c.exchange()
				messages := ""
				for _, m := range c.nodes {
					messages += fmt.Sprintf("%+v", m.Statuses())
				}
				causes := view(t, db, func(tx *store.Tx) (causes string, err error) {
					err = tx.QueryRow(`SELECT COALESCE(MAX(cause), '') FROM line_finding`).Scan(&causes)
					return causes, err
				})
				if len(c.nodes) > 1 && causes == "" {
					t.Error("the table has no finding")
				}
				messages += causes
				for _, word := range []string{"biopsy", "BIOPSY", "Keller", "工場"} {
					if strings.Contains(messages, word) {
						t.Errorf("the prompt's word %s is in %s", word, messages)
					}
				}
				if !strings.Contains(messages, "text/plain: (the provider's message is left out") {
					t.Errorf("the messages %s do not say that the cause was left out", messages)
				}
			})
		})
	}
}

// TestOneNodeSharesNothing checks that a node on SQLite writes no findings and no leases.
func TestOneNodeSharesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.SQLite {
			return
		}
		c := newCluster(t, db, 1)
		c.failure = connectionRefused
		c.nodes[0].fail(6)
		c.probe(0)
		if got := c.states(); got != "circuit_open" {
			t.Errorf("state %s, want circuit_open", got)
		}
		c.checkAlerts("circuit_open")
		if n := count(t, db, `SELECT (SELECT COUNT(*) FROM line_finding) + (SELECT COUNT(*) FROM line_probe)`); n != 0 {
			t.Errorf("%d rows of findings and probes, want 0", n)
		}
	})
}
