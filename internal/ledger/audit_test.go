package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// TestAuditFindsEveryFault plants one fault after the other into good books.
func TestAuditFindsEveryFault(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		f.checkAudit()
		for _, fault := range ledgertest.BooksFaults() {
			fault.Check(t, db)
		}
		f.checkAudit()
	})
}

// goodBooks lets the ledger write books with every kind of row.
func goodBooks(t *testing.T, db *store.DB, c *clock) *fixture {
	t.Helper()
	ctx := context.Background()
	rpm := int64(1000)
	old := start(t, db)
	former := old.Ledger
	budget := money.USD
	old.open("a", 10*money.USD, 0, KeyLimits{RPM: &rpm, DailyBudget: &budget})
	old.open("b", 10*money.USD, 0, KeyLimits{DailyBudget: &budget})
	old.open("c", 10*money.USD, -money.USD, KeyLimits{DailyBudget: &budget})
	admit := func(l *Ledger, account, request string, change func(*Admission)) *Hold {
		t.Helper()
		a := admission(account, 1000)
		a.Request, a.Received = request, c.now()
		if change != nil {
			change(&a)
		}
		h, err := l.Admit(ctx, a)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	settle := func(h *Hold, e End) {
		t.Helper()
		if err := h.Settle(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	// Long ago: deleted receipts over two months, with a credit among them.
	for i := range 6 {
		h := admit(former, "b", id.At("req_", c.now()), nil)
		if i%3 == 0 {
			h.Release(failed())
		} else {
			settle(h, billed(100))
		}
		c.add(9 * 24 * time.Hour)
	}
	credit(t, db, "b", money.USD)
	c.add(100 * 24 * time.Hour)
	// One request of a dead node has streamed, one has not.
	admit(former, "a", "req_swept", nil).Progress(Progress{Cost: 30, Tokens: Tokens{Prompt: 3, Completion: 4}, Line: "line"})
	admit(former, "a", "req_lost", nil)
	admit(former, "a", "req_written", nil).Release(failed()) // its batch also writes the progress
	if _, err := node.Fence(ctx, db, old.node.Epoch(), 0); err != nil {
		t.Fatal(err)
	}
	f := start(t, db)
	if err := f.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.Fold(ctx); err != nil {
		t.Fatal(err)
	}
	settle(admit(f.Ledger, "b", id.At("req_", c.now()), nil), billed(200))
	settle(admit(f.Ledger, "b", "req_young", nil), billed(0))
	settle(admit(f.Ledger, "b", "req_younger", nil), billed(10))
	// Today.
	settle(admit(f.Ledger, "a", "req_whole", nil), billed(100))
	admit(f.Ledger, "a", "req_failed", nil).Release(failed())
	admit(f.Ledger, "a", "req_closed", nil).Release(End{Outcome: Closed, Status: 499, Code: "client_closed"})
	broken := billed(40)
	broken.Code, broken.Streamed = "upstream_connection_error", true
	settle(admit(f.Ledger, "a", "req_broken", nil), broken)
	settle(admit(f.Ledger, "a", "req_over", nil), billed(5000))
	free := func(a *Admission) { a.Model, a.Amount, a.FreeDaily = "free", 0, 5 }
	settle(admit(f.Ledger, "a", "req_gift", free), billed(0))
	admit(f.Ledger, "a", "req_ungiven", free).Release(failed())
	admit(f.Ledger, "a", "req_giving", free)
	makeJob(f, c, "req_made", true)
	makeJob(f, c, "req_running", false)
	f.Refused(Refusal{Request: "req_refused", Account: "a", Key: "a_key", Model: "m", Status: 402, Code: "insufficient_quota",
		Received: c.now()})
	admit(f.Ledger, "a", "req_open", nil).Progress(Progress{Cost: 20, Tokens: Tokens{Prompt: 3}})
	// An account with a take-back above its balance, and a deleted key.
	settle(admit(f.Ledger, "c", "req_c", nil), billed(10))
	admit(f.Ledger, "c", "req_c_open", nil)
	credit(t, db, "c", -20*money.USD)
	disabled := true
	err := db.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(CloseKeyTx(tx, "c_key"), ChangeAccountTx(tx, "c", AccountChange{Disabled: &disabled}))
	})
	if err != nil {
		t.Fatal(err)
	}
	admit(f.Ledger, "b", "req_last", nil).Release(failed()) // the refusal and the progress are written
	return f
}

func credit(t *testing.T, db *store.DB, account string, amount money.Amount) {
	t.Helper()
	err := db.Update(context.Background(), func(tx *store.Tx) error {
		_, err := CreditTx(tx, account, amount, "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// makeJob submits a job of account a and ends it if ends is true.
func makeJob(f *fixture, c *clock, request string, ends bool) {
	f.t.Helper()
	a := admission("a", 1000)
	a.Request, a.Job, a.Received = request, id.New("job_"), c.now()
	if err := f.AdmitJob(context.Background(), a, &admitHook{}); err != nil {
		f.t.Fatal(err)
	}
	if !ends {
		return
	}
	hold := JobHold{Request: request, Account: a.Account, Key: a.Key}
	end := End{Outcome: Billed, Status: 202, Cost: 500, Quantity: measure.Quantity{Unit: measure.Image, N: 2}, Line: "line"}
	if ended, err := f.EndJob(context.Background(), hold, &endHook{admitHook: &admitHook{}, end: end}); err != nil || !ended {
		f.t.Fatal(ended, err)
	}
}

// TestAuditFindsNothingInRunningRequests audits repeatedly while requests are admitted, streamed,
// settled and released.
func TestAuditFindsNothingInRunningRequests(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		rpm := int64(1_000_000)
		for i := range 5 {
			f.open(fmt.Sprint("a", i), 1000*money.USD, 0, KeyLimits{RPM: &rpm})
		}
		stop := make(chan struct{})
		var group sync.WaitGroup
		for n := range 8 {
			group.Go(func() {
				for r := 0; ; r++ {
					select {
					case <-stop:
						return
					default:
					}
					a := admission(fmt.Sprint("a", n%5), 1000)
					a.Model, a.FreeDaily = "free", 1_000_000
					h, err := f.Admit(context.Background(), a)
					if err != nil {
						t.Error(err)
						return
					}
					if r%3 == 0 {
						h.Release(failed())
						continue
					}
					h.Progress(Progress{Cost: 7, Tokens: Tokens{Prompt: 1}})
					if err := h.Settle(context.Background(), billed(money.Amount(r))); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			f.checkAudit()
			credit(t, db, "a1", money.USD)
		}
		close(stop)
		group.Wait()
		f.checkAudit()
	})
}

// TestAuditOfAProcessThatWasKilled checks that the audit reports the holds if no process serves the
// file, and nothing otherwise.
func TestAuditOfAProcessThatWasKilled(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	f := start(t, db)
	f.open("a", money.USD, 0, KeyLimits{})
	h := f.mustAdmit("a", 100)
	check := func(want int) {
		t.Helper()
		report, err := audit.Run(t.Context(), db, audit.WithoutProcess(db.IsServed))
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Differences) != want || want > 0 && !strings.Contains(report.Differences[0].What, "the next start ends it") {
			t.Errorf("%+v; want %d", report.Differences, want)
		}
	}
	check(1)
	release, err := db.LockFile()
	if err != nil {
		t.Fatal(err)
	}
	check(0)
	if err := release(); err != nil {
		t.Fatal(err)
	}
	check(1)
	h.Release(failed())
	check(0)
}

// TestAuditReadsAnything checks that a column of another type is reported; SQLite stores such a
// value.
func TestAuditReadsAnything(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	f := start(t, db)
	f.open("a", money.USD, 0, KeyLimits{})
	budget := money.USD
	f.open("b", money.USD, 0, KeyLimits{DailyBudget: &budget})
	for _, account := range []string{"a", "b"} {
		if err := f.mustAdmit(account, 100).Settle(t.Context(), billed(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, fault := range ledgertest.TextFaults() {
		fault.Check(t, db)
	}
}

// listed is the maximum number of listed differences.
const listed = 1000

// TestAuditIsBounded checks that the audit lists a bounded number of differences and counts the
// rest.
func TestAuditIsBounded(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		ledgertest.InventMovements(t, db, "a", 1500)
		report, err := audit.Run(t.Context(), db)
		if err != nil || report.OK || len(report.Differences) != listed || report.Omitted < 500 {
			t.Errorf("got %v, %d listed, %d omitted; want %d listed and at least 500 omitted", err, len(report.Differences), report.Omitted, listed)
		}
	})
}
