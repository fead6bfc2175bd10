package ledger

import (
	"testing"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/ledgertest"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestAuditOfACopy(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		for _, account := range []string{"a", "b", "c"} {
			f.open(account, money.USD, 0, KeyLimits{})
		}
		open := []*Hold{f.mustAdmit("a", 100), f.mustAdmit("b", 100), f.mustAdmit("c", 0), f.mustAdmit("c", 50)}
		open[1].Progress(Progress{Cost: 7, Tokens: Tokens{Prompt: 1}})
		if err := f.mustAdmit("c", 100).Settle(t.Context(), billed(5)); err != nil {
			t.Fatal(err)
		}
		noProcess := func() (bool, error) { return false, nil }
		for _, c := range ledgertest.CopyFaults() {
			report := ledgertest.PlantFindings(t, db, c.Fault, audit.WithoutProcess(noProcess), audit.AsCopy)
			if report.OK != (c.Finds == "") || report.Checked["open holds of ended processes"] != c.Holds {
				t.Errorf("%s: %+v; want %d holds", c.Name, report, c.Holds)
			}
			if c.Finds != "" && !ledgertest.Reports(report.Differences, c.Finds) {
				t.Errorf("%s: %+v; want %q", c.Name, report.Differences, c.Finds)
			}
		}
		for _, h := range open {
			h.Release(failed())
		}
	})
}
