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
		f.audited()
		for name, tt := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"a key's day is reset":                       {ledgertest.KeyDayReset.Of("a_key"), "spent and holds on a day is gone"},
			"a key's day is set to yesterday":            {ledgertest.KeyDayYesterday.Of("a_key"), "spent and holds on a day is gone"},
			"the day of a key with deleted receipts":     {ledgertest.KeyDayReset.Of("b_key"), "spent and holds on a day is gone"},
			"the day of a deleted key":                   {ledgertest.KeyDayReset.Of("c_key"), "spent and holds on a day is gone"},
			"usage of today is reset":                    {ledgertest.UsageDayReset.Of("a"), "usage of a day is gone"},
			"usage of today with deleted receipts":       {ledgertest.UsageDayReset.Of("b"), "usage of a day is gone"},
			"a free quota is reset":                      {ledgertest.FreeDayReset.Of("a"), "used places of a free quota are gone"},
			"the row of a free quota is deleted":         {ledgertest.FreeDayGone.Of("a"), "used places of a free quota are gone"},
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
				t.Errorf("%s: %q was not reported, but %+v", name, tt.finds, found)
			}
		}
		f.audited()
	})
}

// TestAuditFindsPastDaysReset deletes figures of days before today. The row of the key or model
// has the deleted day or another day. Days with deleted receipts have no figures.
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
		f.audited()
		for name, tt := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"a key's newest day is reset":                 {ledgertest.KeyDayReset.Of("a_key"), "spent and holds on a day is gone"},
			"a key's newest day is set to the day before": {ledgertest.KeyDayYesterday.Of("a_key"), "spent and holds on a day is gone"},
			"earlier days of a key are gone":              {ledgertest.KeyPastDaysGone.Of("a_key"), "spent and holds on a day is gone"},
			"a key with deleted receipts is reset":        {ledgertest.KeyDayReset.Of("b_key"), "spent and holds on a day is gone"},
			"the only day of a deleted key is reset":      {ledgertest.KeyDayReset.Of("c_key"), "spent and holds on a day is gone"},
			"usage of the newest day is reset":            {ledgertest.UsageDayReset.Of("a"), "usage of a day is gone"},
			"usage of earlier days is gone":               {ledgertest.UsagePastDaysGone.Of("a"), "usage of a day is gone"},
			"usage with deleted receipts is reset":        {ledgertest.UsageDayReset.Of("b"), "usage of a day is gone"},
			"a free quota's newest day is reset":          {ledgertest.FreeDayReset.Of("a"), "used places of a free quota are gone"},
			"a free quota's row is gone":                  {ledgertest.FreeDayGone.Of("a"), "used places of a free quota are gone"},
			"a free quota's earlier days are gone":        {ledgertest.FreePastDaysGone.Of("a"), "used places of a free quota are gone"},
			"the only day of a third account is reset":    {ledgertest.UsageDayReset.Of("c"), "usage of a day is gone"},
		} {
			if found := ledgertest.Plant(t, db, tt.fault); !ledgertest.Reports(found, tt.finds) {
				t.Errorf("%s: %q was not reported, but %+v", name, tt.finds, found)
			}
		}
		c.add(100 * 24 * time.Hour)
		if err := f.Fold(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.audited()
	})
}
