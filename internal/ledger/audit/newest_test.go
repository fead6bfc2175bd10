package audit_test

import (
	"testing"

	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/store"
)

// TestAuditFindsResetDays plants figures that are gone, so that nothing disagrees with them:
// those of today, those above holds, and what leads from a key to its requests.
func TestAuditFindsResetDays(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := goodBooks(t, db, c)
		f.audited()
		for name, c := range map[string]struct {
			fault ledgertest.Fault
			finds string
		}{
			"a key's day is reset":                    {ledgertest.KeyDayReset("a_key"), "spent and holds today is gone"},
			"a key's day is yesterday":                {ledgertest.KeyDayYesterday("a_key"), "spent and holds today is gone"},
			"the day of a key with deleted receipts":  {ledgertest.KeyDayReset("b_key"), "spent and holds today is gone"},
			"the day of a deleted key":                {ledgertest.KeyDayReset("c_key"), "spent and holds today is gone"},
			"usage of today is reset":                 {ledgertest.UsageDayReset("a"), "usage of today is gone"},
			"usage of today with deleted receipts":    {ledgertest.UsageDayReset("b"), "usage of today is gone"},
			"a free quota is reset":                   {ledgertest.FreeDayReset("a"), "free quota that are used today are gone"},
			"a free quota is gone":                    {ledgertest.FreeDayGone("a"), "free quota that are used today are gone"},
			"more is above holds":                     {ledgertest.OverMore("a"), "usage above holds is not"},
			"less is above holds":                     {ledgertest.OverLess("a"), "usage above holds is not"},
			"what is above holds is gone":             {ledgertest.OverGone("a"), "usage above holds is not"},
			"what is above holds is another line's":   {ledgertest.OverMoved("a"), "usage above holds is not"},
			"something is above holds that never was": {ledgertest.OverInvented("a", "a_key"), "usage above holds is not"},
			"a key's log is gone":                     {ledgertest.KeyLogGone("a_key"), "does not lead to its request"},
			"the log of a deleted key is gone":        {ledgertest.KeyLogGone("c_key"), "does not lead to its request"},
			"a key's log leads elsewhere":             {ledgertest.KeyLogMoved("b_key"), "does not lead to its request"},
		} {
			if found := ledgertest.Plant(t, db, c.fault); !ledgertest.Says(found, c.finds) {
				t.Errorf("%s: %q was not reported, but %+v", name, c.finds, found)
			}
		}
		f.audited()
	})
}
