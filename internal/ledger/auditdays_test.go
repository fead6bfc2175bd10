package ledger

import (
	"testing"
	"time"

	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// TestAuditFindsResetDays deletes or changes figures that no other figure contradicts: the figures
// of today, the usage above holds, and the segments of keys.
func TestAuditFindsResetDays(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		f.checkAudit()
		for name, tt := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"a key's day is gone":                        {ledgertest.LimitGone.Of("a_key"), "spent is not the sum of the key's charges on"},
			"a key's day is zero":                        {ledgertest.LimitZero.Of("a_key"), "spent is not the sum of the key's charges on"},
			"a key's day is moved to yesterday":          {ledgertest.LimitYesterday.Of("a_key"), "spent is not the sum of the key's charges on"},
			"the day of a key with deleted receipts":     {ledgertest.LimitGone.Of("b_key"), "spent is not the sum of the key's charges on"},
			"the day of a deleted key":                   {ledgertest.LimitGone.Of("c_key"), "spent is not the sum of the key's charges on"},
			"a free quota is gone":                       {ledgertest.LimitGone.Of("a/free"), "the used part of a free quota is not"},
			"a free quota is zero":                       {ledgertest.LimitZero.Of("a/free"), "the used part of a free quota is not"},
			"usage above holds is larger":                {ledgertest.OverMore.Of("a"), "usage above holds is not"},
			"usage above holds is smaller":               {ledgertest.OverLess.Of("a"), "usage above holds is not"},
			"usage above holds is deleted":               {ledgertest.OverGone.Of("a"), "usage above holds is not"},
			"usage above holds is moved to another line": {ledgertest.OverMoved.Of("a"), "usage above holds is not"},
			"usage above holds is invented":              {ledgertest.OverForged.Of("a_key"), "usage above holds is not"},
			"a key's segments are deleted":               {ledgertest.KeyLogGone.Of("a_key"), "does not lead to its request"},
			"a deleted key's segments are deleted":       {ledgertest.KeyLogGone.Of("c_key"), "does not lead to its request"},
			"a key's log points to another segment":      {ledgertest.KeyLogMoved.Of("b_key"), "does not lead to its request"},
		} {
			if found := ledgertest.Plant(t, db, tt.fault); !ledgertest.Reports(found, tt.finds) {
				t.Errorf("%s: got %+v, want %q", name, found, tt.finds)
			}
		}
		f.checkAudit()
	})
}

// TestAuditFindsPastDaysReset changes sums of days before today. Days with deleted receipts have no
// sums.
func TestAuditFindsPastDaysReset(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		settle := func(account, model string, free int64) {
			t.Helper()
			a := admission(account, 1000)
			a.Request, a.Received, a.Model, a.FreeDaily = id.At("req_", c.now()), c.now(), model, free
			end := billed(100)
			if free > 0 {
				a.Amount, end = 0, billed(0)
			}
			h, err := f.Admit(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Settle(t.Context(), end); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			c.add(24 * time.Hour)
			settle("a", "m", 0)
			settle("a", "free", 5)
			settle("b", "m", 0)
		}
		c.add(3 * 24 * time.Hour)
		f.checkAudit()
		for name, tt := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"a key's days are gone":                   {ledgertest.LimitGone.Of("a_key"), "spent is not the sum of the key's charges on"},
			"a key's days are zero":                   {ledgertest.LimitZero.Of("a_key"), "spent is not the sum of the key's charges on"},
			"a key's days are moved":                  {ledgertest.LimitYesterday.Of("a_key"), "spent is not the sum of the key's charges on"},
			"the days of a key with deleted receipts": {ledgertest.LimitGone.Of("b_key"), "spent is not the sum of the key's charges on"},
			"the only day of a deleted key":           {ledgertest.LimitGone.Of("c_key"), "spent is not the sum of the key's charges on"},
			"a free quota's days are gone":            {ledgertest.LimitGone.Of("a/free"), "the used part of a free quota is not"},
			"a free quota's days are zero":            {ledgertest.LimitZero.Of("a/free"), "the used part of a free quota is not"},
		} {
			if found := ledgertest.Plant(t, db, tt.fault); !ledgertest.Reports(found, tt.finds) {
				t.Errorf("%s: got %+v, want %q", name, found, tt.finds)
			}
		}
		c.add(100 * 24 * time.Hour)
		if err := f.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.checkAudit()
	})
}
