package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// TestBooksAgreeWithAModel runs random operations on the ledger and on a model of the books
// (modelBooks): admissions, settlements, jobs, payments, changes of accounts and keys, deaths of
// nodes, lost commits, deletions of old receipts, days and jumps of the clock. It compares every
// answer, and after each operation every figure. On PostgreSQL two nodes share the work.
//
// TOLLGATE_LEDGER_SEED sets the seed of a single run. With TOLLGATE_TORTURE the test runs longer,
// with random seeds. A failure names its seed.
func TestBooksAgreeWithAModel(t *testing.T) {
	t.Parallel()
	first, seeds, steps := uint64(1), uint64(4), 300
	if os.Getenv("TOLLGATE_TORTURE") != "" {
		first, seeds, steps = uint64(rand.Uint32()), 20, 600
	}
	if text := os.Getenv("TOLLGATE_LEDGER_SEED"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("TOLLGATE_LEDGER_SEED is %q, want a number", text)
		}
		first, seeds = seed, 1
	}
	for seed := first; seed < first+seeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			eachJumpingClock(t, func(t *testing.T, db *store.DB, c *jumpingClock) {
				d := newDifferential(t, db, c, seed)
				for step := range steps {
					d.step()
					d.compare()
					if step%20 == 19 || step == steps-1 {
						d.compareAll()
					}
					if t.Failed() {
						t.Fatalf("TOLLGATE_LEDGER_SEED=%d fails at step %d, at %v:\n%s", seed, step, c.now().UTC(), strings.Join(d.log, "\n"))
					}
				}
			})
		})
	}
}

// differential runs each operation on the ledger and on the model.
type differential struct {
	*fixture // the first node
	c        *jumpingClock
	random   *rand.Rand
	m        *modelBooks
	nodes    []*testNode
	dead     map[string]bool // epochs
	running  []runningRequest
	checked  map[string]modelKey // the keys as the callers of Admit know them
	factors  map[string]int64    // of accounts, as those callers know them
	wrong    time.Duration       // the clock's error
	folding  bool                // receipts are deleted during the test
	log      []string            // the last operations
}

type testNode struct {
	*Ledger
	script script
}

// runningRequest is an admitted request.
type runningRequest struct {
	modelRequest
	hold *Hold // nil for a job
}

func newDifferential(t *testing.T, db *store.DB, c *jumpingClock, seed uint64) *differential {
	d := &differential{
		c: c, random: rand.New(rand.NewPCG(seed, 11)), dead: map[string]bool{},
		checked: map[string]modelKey{}, factors: map[string]int64{}, folding: seed%2 == 0,
		m: &modelBooks{accounts: map[string]*modelAccount{}, keys: map[string]*modelKey{}, open: map[string]modelRequest{},
			payments: map[string]modelPayment{}},
	}
	nodes := 2
	if db.OneProcess() {
		nodes = 1
	}
	for range nodes {
		n := &testNode{}
		f := start(t, db, n.script.install, func(o *Options) {
			if d.folding {
				o.Retention = 2 * day
			}
		})
		n.Ledger, d.fixture = f.Ledger, f
		d.nodes = append(d.nodes, n)
	}
	for account, keys := range map[string][]string{"a": {"a_key", "a_2"}, "b": {"b_key"}, "c": {"c_key"}} {
		d.m.accounts[account] = &modelAccount{}
		d.update(func(tx *store.Tx) error { return OpenAccountTx(tx, account, 0) })
		for _, key := range keys {
			d.m.keys[key] = &modelKey{account: account, version: 1, rpm: -1, dailyBudget: -1, totalLimit: -1}
			d.update(func(tx *store.Tx) error { return OpenKeyTx(tx, key, account, KeyLimits{}) })
		}
	}
	for _, account := range []string{"a", "b", "c"} {
		d.pay(account, 20_000, "")
	}
	d.changeKey("a_key", modelKey{rpm: 6, dailyBudget: 1000, totalLimit: -1})
	d.changeKey("b_key", modelKey{rpm: -1, dailyBudget: 1000, totalLimit: 9000})
	return d
}

func (d *differential) update(fn func(tx *store.Tx) error) {
	d.t.Helper()
	update(d.t, d.db, fn)
}

func (d *differential) note(format string, args ...any) {
	d.log = append(d.log[max(0, len(d.log)-30):], fmt.Sprintf(format, args...))
}

func (d *differential) one(names ...string) string { return names[d.random.IntN(len(names))] }

func (d *differential) chance(n int) bool { return d.random.IntN(n) == 0 }

func (d *differential) node() *testNode { return d.nodes[d.random.IntN(len(d.nodes))] }

func (d *differential) step() {
	switch n := d.random.IntN(100); {
	case n < 38:
		d.admit(d.node(), d.request())
	case n < 62:
		if len(d.running) > 0 {
			d.end(d.random.IntN(len(d.running)))
		}
	case n < 66:
		d.progress()
	case n < 71:
		d.burst()
	case n < 81:
		d.pass()
	case n < 86:
		d.jump()
	case n < 89:
		d.passHours()
	case n < 93:
		d.pay(d.one("a", "b", "c"), []int64{1500, 300, -700}[d.random.IntN(3)], d.one("", "", "p1", "p2", "p3"))
	case n < 97:
		d.change()
	default:
		d.die()
	}
}

// pass lets some seconds pass, sometimes up to the millisecond before or at which a request leaves
// the rate window of a key.
func (d *differential) pass() {
	wait := time.Duration(d.random.IntN(40_000)) * time.Millisecond
	if hits := d.m.keys[d.one("a_key", "a_2", "b_key")].hits; len(hits) > 0 && d.chance(2) {
		if left := hits[0] + modelWindow - d.c.ms.Load() - d.random.Int64N(2); left > 0 {
			wait = time.Duration(min(left, modelWindow)) * time.Millisecond
		}
	}
	d.c.pass(wait)
	d.note("%v later", wait)
}

// request returns a random request.
func (d *differential) request() modelRequest {
	key := d.one("a_key", "a_key", "a_2", "b_key", "c_key")
	r := modelRequest{id: id.At("req_", d.c.now()), account: d.m.keys[key].account, key: key, version: d.checked[key].version, model: "m",
		units: d.random.Int64N(400)}
	if d.chance(3) {
		r.model, r.freeDaily = "gift", 4
	}
	if d.chance(4) {
		r.job = "job_" + r.id
	}
	return r
}

func (d *differential) admission(r modelRequest) Admission {
	sum, factor := money.Sum{}, money.Factor(d.factors[r.account])
	sum.Each(r.units, 1, 1_000_000)
	return Admission{Request: r.id, Account: r.account, Key: r.key, KeyVersion: r.version, Model: r.model, Endpoint: "/v1/chat/completions",
		Amount: sum.Hold(factor), FreeDaily: r.freeDaily, Factor: factor, Received: d.c.now(), Job: r.job}
}

func (d *differential) admit(n *testNode, r modelRequest) {
	d.maybeBreak(n)
	a := d.admission(r)
	var hold *Hold
	var err error
	if r.job != "" {
		err = n.AdmitJob(context.Background(), a, &admitHook{})
	} else {
		hold, err = n.Admit(context.Background(), a)
	}
	d.checkAdmission(r, hold, err)
}

// checkAdmission compares the answer to an admission with the model's.
func (d *differential) checkAdmission(r modelRequest, hold *Hold, err error) {
	if hold != nil {
		r.node = hold.open.Row.Epoch
	}
	got, want := verdict(err), d.m.admit(d.c.ms.Load(), r)
	d.note("admit %+v: %s", r, got)
	if got != want {
		d.t.Errorf("admitting %+v: %q (%v), want %q", r, got, err, want)
	}
	if got == "" {
		d.running = append(d.running, runningRequest{d.m.open[r.id], hold})
	}
	if got == "changed" { // the caller reads the key and the prices again
		d.checked[r.key], d.factors[r.account] = *d.m.keys[r.key], d.m.accounts[r.account].factor
	}
}

// verdict names the reason of a refusal like the model.
func verdict(err error) string {
	if err == nil || errors.Is(err, ErrKeyChanged) {
		return map[bool]string{false: "", true: "changed"}[err != nil]
	}
	f := fault.Of(err)
	switch {
	case f == nil:
		return err.Error()
	case f.Code == fault.InvalidAPIKey:
		return "disabled"
	case f.Code == fault.RateLimitExceeded && !f.NoRetry:
		return "rate"
	case f.Code == fault.RateLimitExceeded:
		return "free quota"
	}
	for _, name := range []string{"daily budget", "total limit", "balance"} {
		if f.Code == fault.InsufficientQuota && strings.Contains(f.Message(), name) {
			return name
		}
	}
	return err.Error()
}

// outcome is a random end of a request.
type outcome struct {
	Outcome
	modelUse
	streamed bool
}

func (d *differential) outcome() outcome {
	use := modelUse{units: d.random.Int64N(400), prompt: d.random.Int64N(50), completion: d.random.Int64N(50)}
	if d.chance(2) {
		unit := []measure.Unit{measure.Image, measure.VideoMS, "tile"}[d.random.IntN(3)]
		use.quantity = measure.Quantity{Unit: unit, N: 1 + d.random.Int64N(50)}
	}
	o := outcome{Outcome: Billed, modelUse: use, streamed: d.chance(2)}
	if d.chance(3) {
		o.Outcome = []Outcome{Failed, Closed}[d.random.IntN(2)]
	}
	return o
}

func endOf(r modelRequest, o outcome) End {
	sum := money.Sum{}
	sum.Each(o.units, 1, 1_000_000)
	return End{Outcome: o.Outcome, Cost: sum.Charge(money.Factor(r.factor)), Tokens: Tokens{Prompt: o.prompt, Completion: o.completion},
		Quantity: o.quantity, Streamed: o.streamed, Line: "line", Status: map[Outcome]int{Billed: 200, Failed: 502, Closed: 499}[o.Outcome]}
}

func (d *differential) end(i int) {
	r, o := d.running[i], d.outcome()
	d.running = slices.Delete(d.running, i, i+1)
	n := d.node()
	if r.hold != nil { // only its node ends a chat request
		n = d.nodes[slices.IndexFunc(d.nodes, func(n *testNode) bool { return n.Ledger == r.hold.ledger })]
	}
	d.maybeBreak(n)
	d.checkEnd(r, o, d.endNow(n, r, o))
}

// endNow ends a request on a node and waits for the commit.
func (d *differential) endNow(n *testNode, r runningRequest, o outcome) (err error) {
	ctx, end := context.Background(), endOf(r.modelRequest, o)
	switch {
	case r.job != "":
		_, err = n.EndJob(ctx, JobHold{Request: r.id, Account: r.account, Key: r.key}, &endHook{admitHook: &admitHook{}, end: end})
	case o.Outcome == Billed:
		err = r.hold.Settle(ctx, end)
	default:
		r.hold.Release(end)
		if err = flush(n.Ledger); err == nil && d.dead[r.node] {
			err = ErrNotSettled
		}
	}
	return err
}

// checkEnd compares the answer to a settlement with the model's. The requests of a dead node can only
// be ended by a sweep.
func (d *differential) checkEnd(r runningRequest, o outcome, err error) {
	d.note("end %s of %s with %+v: %v", r.id, r.key, o, err)
	if d.dead[r.node] {
		if !errors.Is(err, ErrNotSettled) {
			d.t.Errorf("settling a request of a dead node: got %v, want ErrNotSettled", err)
		}
		return
	}
	if err != nil || !d.m.end(r.id, o.Outcome, o.modelUse) {
		d.t.Errorf("settling %+v: got %v, want no error", r.modelRequest, err)
	}
}

// progress records the progress of a running stream.
func (d *differential) progress() {
	i := slices.IndexFunc(d.running, func(r runningRequest) bool { return r.hold != nil && !d.dead[r.node] })
	if i < 0 {
		return
	}
	r, o := &d.running[i], d.outcome()
	end := endOf(r.modelRequest, o)
	r.hold.Progress(Progress{Cost: end.Cost, Tokens: end.Tokens, Quantity: end.Quantity, Line: "line"})
	if err := flush(r.hold.ledger); err != nil {
		d.t.Fatal(err)
	}
	r.progress = o.modelUse
	d.m.open[r.id] = r.modelRequest
	d.note("progress of %s: %+v", r.id, o.modelUse)
}

// flush waits for a batch after all earlier operations of a node.
func flush(l *Ledger) error {
	return l.committer.Confirm(context.Background())
}

// maybeBreak lets the next batch of a node lose its connection, sometimes.
func (d *differential) maybeBreak(n *testNode) {
	n.script.set(nil)
	if d.chance(12) {
		n.script.set(breakFirst(1, commit.PhaseWrite, func(run func() error) error { return errors.Join(run(), errLost) }))
	}
}

// burst sends several operations to one node while its committer waits for the database, so that
// they are in one batch. A batch has the settlements first.
func (d *differential) burst() {
	n := d.node()
	if err := flush(n.Ledger); err != nil { // leaves no refusal in the queue
		d.t.Fatal(err)
	}
	entered, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	n.script.set(func(_ commit.Phase, run func() error) error {
		once.Do(func() { close(entered); <-open })
		return run()
	})
	var group sync.WaitGroup
	group.Go(func() {
		if err := flush(n.Ledger); err != nil {
			d.t.Error(err)
		}
	})
	<-entered
	var answers []func()
	send := func(operation func() (answer func())) {
		i := len(answers)
		answers = append(answers, nil)
		waiting := n.committer.Queued()
		group.Go(func() { answers[i] = operation() })
		for n.committer.Queued() == waiting {
			runtime.Gosched()
		}
	}
	for i := len(d.running) - 1; i >= 0 && len(answers) < 4; i-- {
		r, o := d.running[i], d.outcome()
		if r.job == "" && (r.hold.ledger != n.Ledger || d.dead[r.node]) {
			continue
		}
		d.running = slices.Delete(d.running, i, i+1)
		send(func() func() {
			err := d.endNow(n, r, o)
			return func() { d.checkEnd(r, o, err) }
		})
	}
	for range 2 + d.random.IntN(5) {
		r := d.request()
		r.job = ""
		a := d.admission(r)
		send(func() func() {
			hold, err := n.Admit(context.Background(), a)
			return func() { d.checkAdmission(r, hold, err) }
		})
	}
	close(open)
	group.Wait()
	for _, answer := range answers {
		answer()
	}
}

// jump makes the clock wrong, or right again.
func (d *differential) jump() {
	errs := []time.Duration{2 * time.Second, time.Hour, 12 * time.Hour, -time.Hour, -12 * time.Hour}
	if !d.folding { // else a limit may begin again on a day whose receipts are deleted
		errs = append(errs, day, 2*day, 40*day, 400*day, -day, -40*day)
	}
	change := -d.wrong
	if d.wrong == 0 {
		change = errs[d.random.IntN(len(errs))]
	}
	d.wrong += change
	d.c.add(change)
	d.note("jump by %v", change)
	if d.chance(2) {
		if err := d.node().keepTime(context.Background()); err != nil {
			d.t.Fatal(err)
		}
		for _, k := range d.m.keys {
			k.forgetFutureHits(d.c.ms.Load())
		}
		d.note("keep the time")
	}
}

// passHours lets hours pass and deletes old rows.
func (d *differential) passHours() {
	d.c.pass(time.Duration(d.random.IntN(16)) * time.Hour)
	if err := d.node().Fold(context.Background()); err != nil {
		d.t.Fatal(err)
	}
	d.note("delete old rows at %v", d.c.now().UTC())
	oldest := d.db.Expiry(d.c.ms.Load()) - hitsLife.Milliseconds()
	for _, k := range d.m.keys {
		k.hits = slices.DeleteFunc(k.hits, func(at int64) bool { return at < oldest })
	}
}

func (d *differential) pay(account string, amount int64, reference string) {
	var got MoveResult
	err := d.db.Update(context.Background(), func(tx *store.Tx) (err error) {
		got, err = MoveTx(tx, account, Payment{Amount: money.Amount(amount), Reference: reference})
		return err
	})
	balance, want := d.m.pay(account, amount, reference)
	d.note("pay %d to %s with %q: %s", amount, account, reference, want)
	var conflict *ReferenceError
	switch {
	case errors.As(err, &conflict) != (want == "conflict"), conflict == nil && err != nil:
		d.t.Errorf("paying %d to %s with %q: %v, want %q", amount, account, reference, err, want)
	case int64(got.Balance) != balance || got.Repeated != (want == "repeated"):
		d.t.Errorf("paying %d to %s with %q: %+v, want %q, %d", amount, account, reference, got, want, balance)
	}
}

// change changes an account, a key, or an account's price factor.
func (d *differential) change() {
	switch account := d.one("a", "b", "c"); d.random.IntN(4) {
	case 0:
		a := d.m.accounts[account]
		a.floor, a.disabled = -d.random.Int64N(2)*1000, !a.disabled && d.chance(3)
		d.note("account %s: floor %d, disabled %v", account, a.floor, a.disabled)
		d.update(func(tx *store.Tx) error {
			return ChangeAccountTx(tx, account, AccountChange{Floor: (*money.Amount)(&a.floor), Disabled: &a.disabled})
		})
	case 1:
		d.m.accounts[account].factor = []int64{0, 333_333, 900_000, 1_500_000}[d.random.IntN(4)]
		d.note("factor of %s: %d", account, d.m.accounts[account].factor)
		for _, k := range d.m.keys {
			if k.account == account {
				k.version++
			}
		}
		d.update(func(tx *store.Tx) error { return RecheckKeysTx(tx, account) })
	default:
		limit := func(most int64) int64 {
			return []int64{-1, most, d.random.Int64N(most)}[d.random.IntN(3)]
		}
		d.changeKey(d.one("a_key", "a_2", "b_key"),
			modelKey{rpm: limit(8), dailyBudget: limit(3000), totalLimit: limit(60_000), disabled: d.chance(6)})
	}
}

func (d *differential) changeKey(key string, to modelKey) {
	k := d.m.keys[key]
	k.version++
	k.rpm, k.dailyBudget, k.totalLimit, k.disabled = to.rpm, to.dailyBudget, to.totalLimit, to.disabled
	d.note("key %s: %+v", key, *k)
	d.update(func(tx *store.Tx) error {
		return ChangeKeyTx(tx, key, KeyLimits{RPM: loadLimit[int64](k.rpm), DailyBudget: loadLimit[money.Amount](k.dailyBudget),
			TotalLimit: loadLimit[money.Amount](k.totalLimit), Disabled: k.disabled})
	})
}

// die declares a node dead. The node rejoins, and a sweep ends its requests, at once or after some
// further operations.
func (d *differential) die() {
	n, ctx := d.node(), context.Background()
	epoch := n.node.Epoch()
	n.script.set(nil)
	for isDead := false; !isDead; { // a batch of refusals may change the heartbeat in between
		nodes, err := node.List(ctx, d.db)
		if err != nil {
			d.t.Fatal(err)
		}
		i := slices.IndexFunc(nodes, func(r node.Record) bool { return r.Epoch == epoch })
		if isDead, err = node.Fence(ctx, d.db, epoch, nodes[i].Beat); err != nil {
			d.t.Fatal(err)
		}
	}
	d.dead[epoch] = true
	d.note("node %s dies", epoch)
	if i := slices.IndexFunc(d.running, func(r runningRequest) bool { return r.node == epoch }); i >= 0 && d.chance(2) {
		d.end(i)
	}
	for n.node.Epoch() == epoch { // a batch finds the fence
		_ = flush(n.Ledger) // of the dead epoch
	}
	if !d.chance(3) {
		d.sweep()
	}
}

func (d *differential) sweep() {
	if err := d.node().committer.Sweep(context.Background()); err != nil {
		d.t.Fatal(err)
	}
	d.m.sweep(func(node string) bool { return d.dead[node] })
	d.running = slices.DeleteFunc(d.running, func(r runningRequest) bool { return d.dead[r.node] })
	d.note("sweep")
}
