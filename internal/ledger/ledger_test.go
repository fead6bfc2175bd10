package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("database/sql.(*DB).connectionOpener"))
}

type clock struct{ ms atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ms.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixMilli())
	return c
}

func (c *clock) now() time.Time      { return time.UnixMilli(c.ms.Load()) }
func (c *clock) add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// eachClock runs a test on both databases, each with its own clock.
func eachClock(t *testing.T, test func(t *testing.T, db *store.DB, c *clock)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := newClock()
		test(t, storetest.Open(t, url, store.Options{Now: c.now}), c)
	})
}

// fixture is a started ledger on a database.
type fixture struct {
	*Ledger
	t *testing.T
}

func join(t *testing.T, db *store.DB) *node.Node {
	t.Helper()
	n, err := node.Join(context.Background(), node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs a ledger until the test ends. The functions in change adjust its options.
func start(t *testing.T, db *store.DB, change ...func(*Options)) *fixture {
	t.Helper()
	o := Options{DB: db, Node: join(t, db), OutageGrace: 20 * time.Second, QueueWait: 10 * time.Second}
	for _, c := range change {
		c(&o)
	}
	l := New(o)
	ctx := context.Background()
	if err := l.Start(ctx); err != nil {
		t.Fatal(err)
	}
	f := &fixture{Ledger: l, t: t}
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := f.Close(ctx); err != nil {
		f.t.Errorf("close: %v", err)
	}
}

// open makes an account with a credit, and a key named after the account with the suffix _key.
func (f *fixture) open(account string, credit, floor money.Amount, limits KeyLimits) {
	f.t.Helper()
	err := f.db.Update(context.Background(), func(tx *store.Tx) error {
		if err := OpenAccountTx(tx, account, floor); err != nil {
			return err
		}
		if credit != 0 {
			if _, err := CreditTx(tx, account, credit, ""); err != nil {
				return err
			}
		}
		return OpenKeyTx(tx, account+"_key", account, limits)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func admission(account string, amount money.Amount) Admission {
	return Admission{Request: id.New("req_"), Account: account, Key: account + "_key", KeyVersion: 1,
		Model: "m", Endpoint: "/v1/chat/completions", Amount: amount, Received: time.Now()}
}

func (f *fixture) admit(account string, amount money.Amount) (*Hold, error) {
	return f.Admit(context.Background(), admission(account, amount))
}

func (f *fixture) mustAdmit(account string, amount money.Amount) *Hold {
	f.t.Helper()
	h, err := f.admit(account, amount)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

// fence declares the fixture's node dead, like another node.
func (f *fixture) fence() {
	f.t.Helper()
	ctx, epoch := context.Background(), f.node.Epoch()
	nodes, err := node.List(ctx, f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Epoch != epoch {
			continue
		}
		if dead, err := node.Fence(ctx, f.db, epoch, n.Beat); err != nil || !dead {
			f.t.Fatal(dead, err)
		}
	}
}

func billed(cost money.Amount) End {
	return End{Outcome: Billed, Cost: cost, Tokens: Tokens{Prompt: 10, Completion: 5}, Status: 200, Line: "line"}
}

func failed() End { return End{Outcome: Failed, Status: 502, Code: "upstream_unavailable"} }

func (f *fixture) state(account string) AccountState {
	f.t.Helper()
	var s AccountState
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		states, err := AccountsTx(tx, []string{account})
		s = states[account]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) keyState(account string) KeyState {
	f.t.Helper()
	var s KeyState
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		states, err := KeysTx(tx, []string{account + "_key"})
		s = states[account+"_key"]
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) usage(account string) Usage {
	f.t.Helper()
	var u Usage
	err := f.db.View(context.Background(), func(tx *store.Tx) (err error) {
		u, err = UsageTx(tx, account)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return u
}

func (f *fixture) requests(filter requestlog.Selection) []requestlog.Receipt {
	f.t.Helper()
	if filter.Limit == 0 {
		filter.Limit = 1000
	}
	var page requestlog.Page
	err := f.db.View(context.Background(), func(tx *store.Tx) (err error) {
		page, err = requestlog.ListTx(tx, filter)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return page.Receipts
}

// checkAudit checks that the audit finds no difference.
func (f *fixture) checkAudit() {
	f.t.Helper()
	report, err := audit.Run(context.Background(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	if !report.OK {
		f.t.Errorf("audit: got %+v, want no differences", report.Differences)
	}
}

func wantCode(t *testing.T, err error, want fault.Code) {
	t.Helper()
	var e *fault.Error
	if !errors.As(err, &e) || e.Code != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestHoldAndSettle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD/2)
		if s := f.state("a"); s.Held != money.USD/2 || s.Balance != money.USD {
			t.Fatalf("after the hold: got %+v, want 0.5 held of 1", s)
		}
		f.checkAudit()
		if err := h.Settle(context.Background(), billed(money.USD/4)); err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(context.Background(), billed(money.USD/4)); err != nil {
			t.Fatalf("second settlement: got %v, want no error", err)
		}
		h.Release(failed())
		if s := f.state("a"); s.Held != 0 || s.Balance != money.USD*3/4 {
			t.Errorf("after the settlement: got %+v, want a balance of 0.75 and nothing held", s)
		}
		k := f.keyState("a")
		if k.Spent != money.USD/4 || k.SpentToday != money.USD/4 || k.Held != 0 || k.LastUsedMS == 0 {
			t.Errorf("got key %+v, want 0.25 spent, in total and today, nothing held, and a last use", k)
		}
		list := f.requests(requestlog.Selection{Account: "a"})
		if len(list) != 1 || list[0].Cost != money.USD/4 || list[0].Held != money.USD/2 || list[0].Status != 200 || list[0].Tokens.Prompt != 10 {
			t.Errorf("got receipts %+v, want one with status 200, 0.25 of 0.5 charged, and 10 prompt tokens", list)
		}
		u := f.usage("a")
		if u.Total != u.ByModel[0].Totals || u.Total.Requests != 1 || u.Total.Billed != 1 || u.Today.Requests != 1 ||
			u.Today.Cost != money.USD/4 {
			t.Errorf("got usage %+v, want one billed request of 0.25, also today and of its model", u)
		}
		f.checkAudit()
	})
}

func TestChargeNeverExceedsTheHold(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var over atomic.Int64
		f := start(t, db, func(o *Options) {
			o.Observer.OverHold = func(a money.Amount) { over.Add(int64(a)) }
		})
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD)
		if err := h.Settle(context.Background(), billed(3*money.USD)); err != nil {
			t.Fatal(err)
		}
		if s := f.state("a"); s.Balance != 0 || over.Load() != int64(2*money.USD) {
			t.Errorf("balance %s, over %d; want 0 and 2 USD", s.Balance, over.Load())
		}
		f.checkAudit()
	})
}

func TestReleaseChargesNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		f.mustAdmit("a", money.USD).Release(failed())
		f.mustAdmit("a", money.USD).Release(End{Outcome: Closed, Status: 499, Code: "client_closed"})
		if s := f.state("a"); s.Held != 0 || s.Balance != money.USD {
			t.Errorf("%+v; want nothing held or charged", s)
		}
		u := f.usage("a")
		if u.Total.Requests != 2 || u.Total.Billed != 0 || u.Total.Failed != 1 {
			t.Errorf("usage %+v; want 2 requests, 1 failed", u.Total)
		}
		f.checkAudit()
	})
}

func TestBurstAdmitsOnlyCoveredRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 10*money.USD, -money.USD, KeyLimits{})
		var admitted, refused atomic.Int64
		var group sync.WaitGroup
		for range 400 {
			group.Go(func() {
				if _, err := f.admit("a", money.USD); err != nil {
					wantCode(t, err, fault.InsufficientQuota)
					refused.Add(1)
					return
				}
				admitted.Add(1)
				if s := f.state("a"); s.Balance-s.Held < -money.USD {
					t.Errorf("got %s available, want at least the floor of -1", s.Balance-s.Held)
				}
			})
		}
		group.Wait()
		if admitted.Load() != 11 || refused.Load() != 389 {
			t.Errorf("%d admitted, %d refused; want 11 and 389", admitted.Load(), refused.Load())
		}
		f.checkAudit()
	})
}

func TestManyCallersOnManyAccounts(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		const accounts, callers, rounds = 40, 200, 10
		for i := range accounts {
			f.open(fmt.Sprint("a", i), 1000*money.USD, 0, KeyLimits{})
		}
		var charged atomic.Int64
		var group sync.WaitGroup
		for c := range callers {
			group.Go(func() {
				for r := range rounds {
					h, err := f.admit(fmt.Sprint("a", (c*rounds+r)%accounts), money.USD)
					if err != nil {
						t.Error(err)
						return
					}
					switch r % 4 {
					case 0:
						h.Release(failed())
					case 1:
						h.Progress(Progress{Cost: 7, Tokens: Tokens{Prompt: 1}})
						fallthrough
					default:
						if err := h.Settle(context.Background(), billed(money.Amount(1000+r))); err != nil {
							t.Error(err)
							return
						}
						charged.Add(int64(1000 + r))
					}
				}
			})
		}
		group.Wait()
		var balance money.Amount
		for i := range accounts {
			s := f.state(fmt.Sprint("a", i))
			if s.Held != 0 {
				t.Errorf("account %d holds %s, want 0", i, s.Held)
			}
			balance += s.Balance
		}
		if want := accounts*1000*money.USD - money.Amount(charged.Load()); balance != want {
			t.Errorf("balances add up to %s, want %s", balance, want)
		}
		f.checkAudit()
	})
}

func update(t *testing.T, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.View(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}
