package ledger

import (
	"context"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

func TestFoldKeepsTheBooks(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		for i := range 700 {
			c.add(time.Hour)
			a := admission("a", 1000)
			a.Request, a.Received = id.At("req_", c.now()), c.now()
			h, err := f.Admit(context.Background(), a)
			if err != nil {
				t.Fatal(err)
			}
			switch i % 3 {
			case 0:
				h.Release(failed())
			default:
				if err := h.Settle(context.Background(), billed(100)); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.add(100 * 24 * time.Hour)
		recent := admission("a", 1000)
		recent.Request = id.At("req_", c.now())
		h, err := f.Admit(context.Background(), recent)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(context.Background(), billed(1)); err != nil {
			t.Fatal(err)
		}
		before, entriesBefore := f.usage("a"), f.entries("a", 1000)
		if err := f.Fold(context.Background()); err != nil {
			t.Fatal(err)
		}
		if list := f.requests(requestlog.Selection{Limit: 5000}); len(list) != 1 {
			t.Errorf("%d receipts are left; want only the recent one", len(list))
		}
		after := f.usage("a")
		if after.Total != before.Total || after.Balance != before.Balance {
			t.Errorf("got usage %+v, want %+v", after.Total, before.Total)
		}
		entries := f.entries("a", 7)
		var sum money.Amount
		for _, e := range entries {
			sum += e.Amount
		}
		if sum != after.Balance || len(entries) != len(entriesBefore) {
			t.Errorf("%d entries add up to %s; want %d and %s", len(entries), sum, len(entriesBefore), after.Balance)
		}
		for i, e := range entries {
			if e != entriesBefore[i] {
				t.Fatalf("got entry %+v, want %+v", e, entriesBefore[i])
			}
		}
		f.checkAudit()
	})
}

// entries returns all movements of an account, and reads them page by page.
func (f *fixture) entries(account string, page int) []movement.Entry {
	f.t.Helper()
	var all []movement.Entry
	err := f.db.View(context.Background(), func(tx *store.Tx) error {
		after := ""
		for {
			entries, more, err := movement.ListTx(tx, movement.Selection{Account: account, After: after, Limit: page})
			if err != nil {
				return err
			}
			if all = append(all, entries...); !more {
				return nil
			}
			after = all[len(all)-1].ID
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// TestFoldOfRefusalsKeepsLimits deletes a refusal that is older than the first admitted request of
// its day. The sums of the day's limits stay, because no request in them is deleted.
func TestFoldOfRefusalsKeepsLimits(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		budget := money.USD
		f := start(t, db)
		f.open("a", 0, 0, KeyLimits{DailyBudget: &budget})
		request := func(model string, amount money.Amount, free int64) Admission {
			a := admission("a", amount)
			a.Request, a.Received, a.Model, a.FreeDaily = id.At("req_", c.now()), c.now(), model, free
			return a
		}
		_, err := f.Admit(t.Context(), request("m", 1000, 0))
		wantCode(t, err, fault.InsufficientQuota)
		credit(t, db, "a", money.USD)
		c.add(2 * time.Hour)
		for _, a := range []Admission{request("m", 1000, 0), request("free", 0, 5)} {
			h, err := f.Admit(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Settle(t.Context(), billed(a.Amount/2)); err != nil {
				t.Fatal(err)
			}
		}
		c.add(90*24*time.Hour - time.Hour)
		if err := f.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, r := range f.requests(requestlog.Selection{Limit: 10}) {
			if r.Outcome != Refused {
				left++
			}
		}
		if left != 2 {
			t.Errorf("%d admitted requests are left; want 2", left)
		}
		f.checkAudit()
		c.add(2 * time.Hour)
		if err := f.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.checkAudit()
	})
}
