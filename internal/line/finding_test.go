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

// cluster is a set of nodes on one database, and a provider with a call counter.
type cluster struct {
	*testing.T
	db    *store.DB
	s     *catalog.Snapshot
	nodes []*member

	mu       sync.Mutex
	calls    int
	fails    func(wire.Form) *upstream.Failure // if nil, the provider answers
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
	began        chan struct{}
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
		sender := alert.New("http://alerts.test/", slog.New(slog.DiscardHandler), c)
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
		m.began <- struct{}{}
		<-m.gate
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	m.c.calls++
	if m.disconnected {
		return nil, upstream.Fail(fault.UpstreamConnectionError, errors.New("no route"))
	}
	if m.c.fails != nil {
		if f := m.c.fails(call.Form); f != nil {
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
		func(ctx context.Context, on *Attempt) error {
			answer, err := on.Chat(ctx, chatcall.Call{Form: on.Form})
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
func (c *cluster) probe(after time.Duration) {
	c.Helper()
	c.advance(after)
	for _, m := range c.nodes {
		m.p.step(c.Context())
	}
	for _, m := range c.nodes {
		m.p.running.Wait()
	}
	c.exchange()
}

// pass moves the database's rows into the past, as if some time had passed for the database too.
func (c *cluster) pass(d time.Duration) {
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

// onPostgres runs a test with three nodes on PostgreSQL.
func onPostgres(t *testing.T, play func(t *testing.T, c *cluster)) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() == store.SQLite { // SQLite has one node; see TestOneNodeSharesNothing
			return
		}
		play(t, newCluster(t, db, 3))
	})
}

func down(wire.Form) *upstream.Failure {
	return upstream.Fail(fault.UpstreamConnectionError, errors.New("refused"))
}

// TestADeadProviderCostsOneNode checks that the other nodes adopt a node's finding without a
// request to the provider, and that all nodes together send one probe at a time and one alert.
func TestADeadProviderCostsOneNode(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, c *cluster) {
		a := c.nodes[0]
		c.fails = down
		for i := range 6 {
			_ = a.ask(fmt.Sprint("account", i%2), wire.FormChat)
		}
		c.probe(0)
		if got := c.states(); got != "circuit_open" || c.takeCalls() > 7 {
			t.Fatalf("the states on the nodes are %s", got)
		}
		for _, m := range c.nodes {
			if err := m.ask("other", wire.FormChat); fault.Of(err) == nil || c.takeCalls() != 0 {
				t.Errorf("a node calls a dead provider: %v", err)
			}
			if wait := m.Statuses()[0].CoolingUntil - m.now.Unix(); wait < 25 || wait > 31 {
				t.Errorf("a node's next probe is in %d s", wait)
			}
		}
		c.checkAlerts("circuit_open")
		for range 3 { // 30 s, then twice as long
			c.probe(10 * time.Minute)
			if n := c.takeCalls(); n != 1 {
				t.Errorf("%d probes by three nodes", n)
			}
		}
		c.fails = nil
		c.probe(10 * time.Minute)
		if got, n := c.states(), c.takeCalls(); got != "half_open" || n != 1 {
			t.Errorf("after a good probe the states on the nodes are %s, %d probes", got, n)
		}
		for range 3 {
			if err := c.nodes[1].ask("other", wire.FormChat); err != nil {
				t.Error(err)
			}
		}
		c.exchange()
		if got := c.states(); got != "in_service" {
			t.Errorf("the states on the nodes are %s", got)
		}
		c.checkAlerts("circuit_open", "in_service")
	})
}

// TestEachFindingReachesTheNodes checks pauses, credentials, models and forms.
func TestEachFindingReachesTheNodes(t *testing.T) {
	t.Parallel()
	field := func(status int, body string, header http.Header) func(wire.Form) *upstream.Failure {
		return func(wire.Form) *upstream.Failure { return upstream.Classify(status, "", []byte(body), header) }
	}
	after := http.Header{"Retry-After": {"40"}}
	for name, tt := range map[string]struct {
		fails func(wire.Form) *upstream.Failure
		state string
	}{
		"a credential": {field(401, `{"error":{"code":"invalid_api_key"}}`, nil), "credentials_out"},
		"a quota":      {field(429, `{"error":{"code":"insufficient_quota"}}`, nil), "credentials_out"},
		"a model":      {field(404, `{"error":{"code":"model_not_found"}}`, nil), "in_service+swift:model_out"},
		"a form": {func(form wire.Form) *upstream.Failure {
			if form == wire.FormResponses {
				return nil
			}
			return upstream.Classify(400, "", []byte(`{"error":{"code":"OperationNotSupported"}}`), nil)
		}, "in_service+swiftchat:form_out"},
		"a model's rate": {field(429, `{"error":{"message":"slow"}}`, after), "in_service+swift:cooling"},
		"all rates":      {field(429, `{"error":{"message":"Your account is limited"}}`, after), "cooling"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onPostgres(t, func(t *testing.T, c *cluster) {
				c.fails = tt.fails
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
				if n := c.takeCalls(); n > 0 && name != "a form" || name == "a form" && n != 1 { // the call uses the other form
					t.Errorf("another node called the provider %d times", n)
				}
				resume()
				fail() // before the nodes have exchanged the end of the first finding
				resume()
				c.exchange()
				if got := c.states(); got != "in_service" {
					t.Errorf("the states after a resume are %s", got)
				}
			})
		})
	}
}

// twoKeys gives the line two keys and returns the first.
func (m *member) twoKeys() *lineKey {
	k := &lineKey{entry: m.table(m.c.s).entries[0], position: 1, mark: "0123", adapter: m}
	k.entry.keys = []*lineKey{k, {entry: k.entry, position: 2, mark: "4567", adapter: m}}
	return k
}

// TestARefusedKeyReachesTheNodes checks that the other nodes use the next key at once, one node
// probes the refused key, and one alert is sent.
func TestARefusedKeyReachesTheNodes(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, c *cluster) {
		var keys []*lineKey
		for _, m := range c.nodes {
			keys = append(keys, m.twoKeys())
		}
		c.nodes[0].refuse(keys[0], "401: no", true)
		c.exchange()
		for i, k := range keys {
			if record, _ := k.entry.stats.keys.lookup("0123"); !k.entry.stats.keys.confirmed(k) || record.cause != "401: no" {
				t.Errorf("node %d does not know that the key is refused: %+v", i, record)
			}
		}
		c.checkAlerts("key_refused")
		c.probe(6 * time.Minute)
		if n := c.takeCalls(); n != 1 {
			t.Errorf("%d probes by three nodes", n)
		}
		for i, k := range keys {
			if k.entry.stats.keys.any.Load() {
				t.Errorf("node %d does not know that the key is accepted", i)
			}
		}
		c.checkAlerts("key_refused", "key_accepted")
	})
}

// TestALateAlertIsSent checks that an alert is sent although a step has written its finding between
// the refusal of a key and the alert.
func TestALateAlertIsSent(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, c *cluster) {
		m := c.nodes[0]
		k := m.twoKeys()
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
	onPostgres(t, func(t *testing.T, c *cluster) {
		a, b := c.nodes[0], c.nodes[1]
		c.fails = down
		a.fail(6)
		c.probe(0)
		c.takeCalls()
		c.advance(time.Minute)
		a.gate, a.began = make(chan struct{}), make(chan struct{})
		a.p.step(t.Context())
		<-a.began
		b.probe()
		if n := c.takeCalls(); n != 0 {
			t.Errorf("%d probes besides the running one", n)
		}
		a.kill()
		c.fails = nil
		b.probe()
		if n := c.takeCalls(); n != 1 || b.Statuses()[0].State != "half_open" {
			t.Errorf("%d probes after the death of the probing node; the line is %s", n, b.Statuses()[0].State)
		}
		close(a.gate)
		a.p.running.Wait()
	})
}

// TestABrokenWayOfOneNode checks that a node with a broken network does not take the line from the
// others for long: after another node finds the line working, the findings of the first node are no
// longer shared.
func TestABrokenWayOfOneNode(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, c *cluster) {
		a, b := c.nodes[0], c.nodes[1]
		a.disconnected = true
		a.fail(6)
		c.probe(0)
		if got := c.states(); got != "circuit_open" {
			t.Fatal(got)
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
			t.Errorf("the states on the nodes are %s", got)
		}
	})
}

// TestANewNodeAndADeadOne checks that a new node adopts the findings of others at once, and that
// lines with findings of a dead node are probed in time.
func TestANewNodeAndADeadOne(t *testing.T) {
	t.Parallel()
	onPostgres(t, func(t *testing.T, c *cluster) {
		a := c.nodes[0]
		c.fails = down
		a.fail(6)
		a.probe()
		c.nodes = nil
		a.kill()
		c.pass(time.Hour) // no node was running
		fresh := newCluster(t, c.db, 1)
		fresh.exchange()
		if got := fresh.states(); got != "circuit_open" {
			t.Errorf("the state on a new node is %s", got)
		}
		fresh.probe(0)
		if got, n := fresh.states(), fresh.takeCalls(); got != "half_open" || n != 1 {
			t.Errorf("the state on a new node is %s after %d probes", got, n)
		}
	})
}

// TestFindingsDoNotRepeatPrompts checks that neither the shared findings nor the state of a line
// repeat a prompt.
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
				c.fails = func(wire.Form) *upstream.Failure { return upstream.Classify(429, "text/plain", []byte(leak), nil) }
				for i := range 6 {
					model, _ := c.s.Model("swift")
					_, _ = c.nodes[0].Try(t.Context(), RoutingRequest{Snapshot: c.s, Model: model, Form: wire.FormChat, Account: fmt.Sprint(i)},
						func(ctx context.Context, on *Attempt) error {
							_, err := on.Chat(ctx, chatcall.Call{Form: on.Form, Body: rawjson.Pieces{[]byte(prompt)}})
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
					t.Error("no finding was written")
				}
				messages += causes
				for _, word := range []string{"biopsy", "BIOPSY", "Keller", "工場"} {
					if strings.Contains(messages, word) {
						t.Errorf("%s is in %s", word, messages)
					}
				}
				if !strings.Contains(messages, "text/plain: (the provider's message is left out") {
					t.Errorf("no cause in %s", messages)
				}
			})
		})
	}
}

// TestOneNodeSharesNothing checks that nothing is exchanged on SQLite.
func TestOneNodeSharesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		if db.Dialect() != store.SQLite {
			return
		}
		c := newCluster(t, db, 1)
		c.fails = down
		c.nodes[0].fail(6)
		c.probe(0)
		if got := c.states(); got != "circuit_open" {
			t.Errorf("the line is %s", got)
		}
		c.checkAlerts("circuit_open")
		if n := count(t, db, `SELECT (SELECT COUNT(*) FROM line_finding) + (SELECT COUNT(*) FROM line_probe)`); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}
