package audit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
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

func (c *clock) now() time.Time      { return time.UnixMilli(c.ms.Load()) }
func (c *clock) add(d time.Duration) { c.ms.Add(d.Milliseconds()) }

// eachClock runs a test on both databases, each with its own clock.
func eachClock(t *testing.T, test func(t *testing.T, db *store.DB, c *clock)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := &clock{}
		c.ms.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixMilli())
		test(t, storetest.Open(t, url, store.Options{Now: c.now}), c)
	})
}

// fixture is a started ledger on a database; it writes the audited books.
type fixture struct {
	*ledger.Ledger
	t    *testing.T
	db   *store.DB
	self *node.Node
}

// start runs a ledger until the test ends.
func start(t *testing.T, db *store.DB) *fixture {
	t.Helper()
	ctx := context.Background()
	self, err := node.Join(ctx, node.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	l := ledger.New(ledger.Options{DB: db, Node: self, OutageGrace: 20 * time.Second, QueueWait: 10 * time.Second})
	if err := l.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &fixture{Ledger: l, t: t, db: db, self: self}
}

// open makes an account with a credit and a key, named account and account_key.
func (f *fixture) open(account string, credit, floor money.Amount, limits ledger.KeyLimits) {
	f.t.Helper()
	err := f.db.Update(context.Background(), func(tx *store.Tx) error {
		if err := ledger.OpenAccountTx(tx, account, floor); err != nil {
			return err
		}
		if _, err := ledger.CreditTx(tx, account, credit, ""); err != nil {
			return err
		}
		return ledger.OpenKeyTx(tx, account+"_key", account, limits)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func admission(account string, amount money.Amount) ledger.Admission {
	return ledger.Admission{Request: id.New("req_"), Account: account, Key: account + "_key", KeyVersion: 1,
		Model: "m", Endpoint: "/v1/chat/completions", Amount: amount, Received: time.Now()}
}

func (f *fixture) mustAdmit(account string, amount money.Amount) *ledger.Hold {
	f.t.Helper()
	h, err := f.Admit(context.Background(), admission(account, amount))
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

func billed(cost money.Amount) ledger.End {
	return ledger.End{Outcome: ledger.Billed, Cost: cost, Tokens: ledger.Tokens{Prompt: 10, Completion: 5}, Status: 200, Line: "line"}
}

func failed() ledger.End {
	return ledger.End{Outcome: ledger.Failed, Status: 502, Code: "upstream_unavailable"}
}

// audited checks that the audit finds no difference.
func (f *fixture) audited() {
	f.t.Helper()
	report, err := audit.Run(context.Background(), f.db)
	if err != nil {
		f.t.Fatal(err)
	}
	if !report.OK {
		f.t.Errorf("audit: %+v", report.Differences)
	}
}

type admitHook struct{}

func (admitHook) Read(*store.Batch)         {}
func (admitHook) Write(*store.Batch, int64) {}
func (admitHook) Decide(int64) error        { return nil }
func (admitHook) Undo() ledger.EndHook      { return nil }

type endHook struct {
	admitHook
	end ledger.End
}

func (p endHook) Decide(int64) (ledger.End, bool) { return p.end, true }
func (p endHook) Orphaned() bool                  { return false }
