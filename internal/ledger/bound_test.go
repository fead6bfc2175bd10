package ledger

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// absurd returns the end of a request whose provider reports impossible figures.
func absurd() End {
	cost := money.Amount(math.MaxInt64)
	return End{Outcome: Billed, Cost: math.MaxInt64, Status: 200, Line: "line", LineCost: &cost,
		Tokens:   Tokens{Prompt: math.MaxInt64, Cached: math.MaxInt64, Completion: math.MaxInt64},
		Quantity: measure.Quantity{Unit: "tile", N: math.MaxInt64}}
}

// TestCountersEnd sets every counter of the schema to the limit of sums and to the limit of its
// column. Each read of the ledger still works, requests are settled, and old receipts are folded.
func TestCountersEnd(t *testing.T) {
	t.Parallel()
	if store.MaxSum != int64(money.Max) {
		t.Fatalf("sums end at %d in SQL, want %d as in Go", store.MaxSum, money.Max)
	}
	for _, limit := range []int64{store.MaxSum, math.MaxInt64} {
		eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
			ctx := context.Background()
			f := start(t, db, func(o *Options) { o.Retention = time.Hour })
			rpm := int64(1000)
			for _, name := range []string{"a", "b"} {
				f.open(name, 1000*money.USD, 0, KeyLimits{RPM: &rpm})
			}
			admit := func(account string, change func(*Admission)) *Hold {
				t.Helper()
				a := admission(account, money.USD)
				a.Request, a.Received = id.At("req_", c.now()), c.now()
				if change != nil {
					change(&a)
				}
				h, err := f.Admit(ctx, a)
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			free := func(a *Admission) { a.Model, a.Amount, a.FreeDaily = "free", 0, 5 }
			settle := func(h *Hold, e End) {
				t.Helper()
				if err := h.Settle(ctx, e); err != nil {
					t.Errorf("settle: %v", err)
				}
			}
			for _, name := range []string{"a", "b"} {
				settle(admit(name, nil), absurd())
				settle(admit(name, free), absurd())
			}
			yesterday := admit("a", nil)
			c.add(24 * time.Hour)
			for _, name := range []string{"a", "b"} { // rolls over from the former day
				settle(admit(name, nil), absurd())
				settle(admit(name, free), absurd())
			}
			today, given := admit("a", nil), admit("b", free)
			ledgertest.SetCounters(t, db, limit)
			reads := func() {
				t.Helper()
				err := db.View(ctx, func(tx *store.Tx) error {
					for name, read := range map[string]func() error{
						"accounts": func() error { _, err := AccountsTx(tx, []string{"a", "b"}); return err },
						"keys":     func() error { _, err := KeysTx(tx, []string{"a_key", "b_key"}); return err },
						"over of accounts": func() error {
							over, err := OverOfAccountsTx(tx, []string{"a", "b"})
							if over["a"] > money.Max {
								t.Errorf("above holds: got %s, want at most %s", over["a"], money.Max)
							}
							return err
						},
						"over of keys":     func() error { _, err := OverOfKeysTx(tx, []string{"a", "b"}, []string{"a_key", "b_key"}); return err },
						"over of lines":    func() error { _, err := OverOfLinesTx(tx, []string{"line"}); return err },
						"over of requests": func() error { _, err := OverOfRequestsTx(tx, []string{today.open.Row.ID}); return err },
						"usage": func() error {
							u, err := UsageTx(tx, "a")
							if u.Total.Prompt <= 0 || u.Total.Prompt > int64(money.Max) || u.Total.Cost < 0 {
								t.Errorf("got usage %+v, want prompt tokens above 0 and at most %d, and no negative cost", u.Total, money.Max)
							}
							return err
						},
						"holding": func() error { _, _, err := HeldTx(tx); return err },
						"spending": func() error {
							rows, err := spending.ReadTx(tx, spending.Query{Until: 1 << 40, Limit: 100})
							if err == nil && (len(rows) != 1 || rows[0].LineCost <= 0 || rows[0].Prompt <= 0) {
								t.Errorf("got spending %+v, want one row with positive sums", rows)
							}
							return err
						},
					} {
						if err := read(); err != nil {
							t.Errorf("%s: %v", name, err)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := audit.Run(ctx, db); err != nil {
					t.Errorf("audit: %v", err)
				}
			}
			reads()
			settle(yesterday, absurd())
			settle(today, absurd())
			storetest.View(t, db, func(tx *store.Tx) error {
				n, err := store.Column[int64](tx, `SELECT COUNT(*) FROM ledger_day WHERE prompt_tokens = $1`, store.MaxSum)
				if err == nil && n[0] < 2 {
					t.Errorf("%d days have the highest sum, want those of both settlements", n[0])
				}
				return err
			})
			given.Release(failed())
			reads()
			ledgertest.RestoreFunds(t, db)
			settle(admit("a", nil), absurd())
			admit("a", nil).Release(failed())
			if _, _, err := creditOf(db, "a", money.USD); err != nil {
				t.Errorf("credit: %v", err)
			}
			c.add(72 * time.Hour)
			if err := f.Fold(ctx); err != nil {
				t.Errorf("fold: %v", err)
			}
			for _, step := range []func(context.Context) error{f.Sweep, f.keepTime} {
				if err := step(ctx); err != nil {
					t.Error(err)
				}
			}
			ledgertest.RestoreFunds(t, db)
			settle(admit("b", nil), absurd())
			reads()
			if sums := ledgertest.SumsOf(t, db, "b"); sums.Over != store.MaxSum {
				t.Errorf("got %+v, want the highest sum above holds", sums)
			}
		})
	}
}

func creditOf(db *store.DB, account string, amount money.Amount) (balance money.Amount, low *Low, err error) {
	err = db.Update(context.Background(), func(tx *store.Tx) error {
		m, err := MoveTx(tx, account, Payment{Amount: amount})
		balance, low = m.Balance, m.Low
		return err
	})
	return balance, low, err
}

// TestAuditOfFullSums lets a line report its highest cost until the sum of its day is full.
// Settlements go on, and the audit reports the sum as unproved.
func TestAuditOfFullSums(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 1000*money.USD, 0, KeyLimits{})
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 130 { // times a million dollars
					h, err := f.admit("a", 1000)
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Settle(t.Context(), absurd()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		sums := ledgertest.SumsOf(t, db, "a")
		if sums.LineCost != store.MaxSum || sums.Over != store.MaxSum || sums.Requests != 8*130 {
			t.Errorf("got %+v, want the highest sums and %d requests", sums, 8*130)
		}
		report, err := audit.Run(t.Context(), db)
		if err != nil || !report.OK || len(report.Unproved) != 1 {
			t.Errorf("got %v, %+v; want one unproved figure and no differences", err, report)
		}
		// A fault in another figure of the same series is still found.
		found := ledgertest.Plant(t, db, ledgertest.DayCountsLess.Of("a"))
		if len(found) == 0 {
			t.Error("a day with one request less: got no differences, want some")
		}
	})
}

// TestHoldsTakeAnyProgress lets a node die with a stream whose progress has impossible figures. The
// sweep charges it.
func TestHoldsTakeAnyProgress(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", 1000)
		h.Progress(Progress{Cost: math.MaxInt64, Tokens: absurd().Tokens, Line: "line"})
		f.mustAdmit("a", 1000).Release(failed()) // its batch also writes the progress
		f.fence()
		other := start(t, db)
		if err := other.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Run(t.Context(), db)
		if err != nil || !report.OK {
			t.Errorf("got %v, %+v; want no differences", err, report)
		}
		if sums := ledgertest.SumsOf(t, db, "a"); other.usage("a").Total.Requests != 2 || sums.Prompt != 1<<40 {
			t.Errorf("got %+v, want 2 requests and the highest count of prompt tokens", sums)
		}
	})
}
