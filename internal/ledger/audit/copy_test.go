package audit_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// copyCases are changes to a database before its copy is taken, while a process has
// four open holds: of a, b, and two of c.
var copyCases = []struct {
	name, change string
	holds        int64  // that AsCopy counts
	finds        string // empty if the audit agrees
}{
	{"the process ran", "", 4, ""},
	{"the process was declared dead", `UPDATE node SET dead = 1`, 4, ""},
	{"the process started long ago", `UPDATE node SET started_ms = 1`, 4, ""},
	{"the process had no other node", `DELETE FROM node WHERE epoch NOT IN (SELECT epoch FROM ledger_hold)`, 4, ""},
	{"the process is unknown", `DELETE FROM node`, 0, "not known"},
	{"a hold was of another process", `UPDATE ledger_hold SET epoch = 'node_other' WHERE account = 'a'`, 3, "not known"},
	{"a hold was lost", `DELETE FROM ledger_hold WHERE account = 'a'`, 3, "held is not the sum"},
	{"a hold was raised", `UPDATE ledger_hold SET amount_nano = amount_nano + 1 WHERE account = 'b'`, 4, "held is not the sum"},
	{"a hold was below zero", `UPDATE ledger_hold SET amount_nano = -1 WHERE account = 'a'`, 4, "a hold is out of range"},
	{"a hold was a job's too", `UPDATE ledger_hold SET job = 'job_1' WHERE account = 'a'`, 4, "a node's and a job's"},
	{"a balance was raised", `UPDATE ledger_account SET balance_nano = balance_nano + 1 WHERE id = 'a'`, 4, "balance is not credits"},
	{"a hold was settled and open", `UPDATE ledger_hold SET id = (SELECT MAX(id) FROM ledger_receipt) WHERE account = 'a'`, 4, "receipt"},
}

func TestAuditOfACopy(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		for _, account := range []string{"a", "b", "c"} {
			f.open(account, money.USD, 0, ledger.KeyLimits{})
		}
		open := []*ledger.Hold{f.mustAdmit("a", 100), f.mustAdmit("b", 100), f.mustAdmit("c", 0), f.mustAdmit("c", 50)}
		open[1].Progress(ledger.Progress{Cost: 7, Tokens: ledger.Tokens{Prompt: 1}})
		if err := f.mustAdmit("c", 100).Settle(t.Context(), billed(5)); err != nil {
			t.Fatal(err)
		}
		for _, c := range copyCases {
			report := auditCopy(t, db, c.change)
			if report.OK != (c.finds == "") || report.Checked["open holds of ended processes"] != c.holds {
				t.Errorf("%s: %+v; want %d holds", c.name, report, c.holds)
			}
			found := func(d audit.Difference) bool { return strings.Contains(d.What, c.finds) }
			if c.finds != "" && !slices.ContainsFunc(report.Differences, found) {
				t.Errorf("%s: %+v; want %q", c.name, report.Differences, c.finds)
			}
		}
		for _, h := range open {
			h.Release(failed())
		}
	})
}

// auditCopy audits a database, changed by a statement that is undone, as a copy that
// no process serves.
func auditCopy(t *testing.T, db *store.DB, change string) (report audit.Findings) {
	t.Helper()
	undo := errors.New("undo")
	err := db.Update(t.Context(), func(tx *store.Tx) (err error) {
		if change != "" {
			if _, err := tx.Exec(change); err != nil {
				return err
			}
		}
		unserved := func() (bool, error) { return false, nil }
		if report, err = audit.RunTx(tx, audit.NobodyServes(unserved), audit.AsCopy); err != nil {
			return err
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatalf("%s: %v", change, err)
	}
	return report
}
