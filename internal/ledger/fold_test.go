package ledger

import (
	"context"
	"testing"
	"time"

	"tollgate/internal/id"
	"tollgate/internal/money"
	"tollgate/internal/store"
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
		young := admission("a", 1000)
		young.Request = id.At("req_", c.now())
		h, err := f.Admit(context.Background(), young)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Settle(context.Background(), billed(1)); err != nil {
			t.Fatal(err)
		}
		before := f.usage("a")
		if err := f.Fold(context.Background()); err != nil {
			t.Fatal(err)
		}
		if list := f.requests(RequestFilter{Limit: 5000}); len(list) != 1 {
			t.Errorf("%d receipts are left; want the young one", len(list))
		}
		after := f.usage("a")
		if after.Total != before.Total || after.Balance != before.Balance {
			t.Errorf("usage %+v became %+v", before.Total, after.Total)
		}
		var entries []Entry
		err = db.View(context.Background(), func(tx *store.Tx) (err error) {
			entries, _, err = EntriesTx(tx, "a", "", 100)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var sum money.Amount
		for _, e := range entries {
			sum += e.Amount
		}
		if sum != after.Balance || len(entries) > 4 || entries[0].Kind != "charge" || entries[len(entries)-1].Kind != "credit" {
			t.Errorf("entries %+v add up to %s; want %s", entries, sum, after.Balance)
		}
		f.audited()
	})
}
