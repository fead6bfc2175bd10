package operator

import (
	"context"
	"errors"
	"testing"

	"tollgate/internal/account"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAuditContinuesOnAnotherNode interrupts a background audit. While its node lives, no other node
// continues the audit; after the node's death, another one does, from the stored progress.
func TestAuditContinuesOnAnotherNode(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const accounts = 5
		for range accounts {
			if _, err := store.Write(t.Context(), db, func(tx *store.Tx) (account.Account, error) {
				return account.CreateTx(tx, account.NewAccount{Name: "acme"})
			}); err != nil {
				t.Fatal(err)
			}
		}
		first, second := newNodeAudits(t, db), newNodeAudits(t, db)
		run := begin(t, first)
		// The node ends after two ranges.
		ctx, end := context.WithCancel(t.Context())
		first.afterRange = func(ranges int) {
			if ranges == 2 {
				end()
			}
		}
		if err := first.Step(ctx, run); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if o := outcome(t, db); o.EndedMS != 0 || o.Findings.Checked["accounts"] != 2 {
			t.Errorf("after two ranges: got %+v, want an unfinished audit of 2 accounts", o)
		}
		takeOver(t, second, "") // first lives
		takeOver(t, first, "")
		fence(t, db, first.node.Epoch())
		takeOver(t, second, run)
		takeOver(t, second, "")
		// The first node is not dead after all, but it has lost the audit.
		ranges := 0
		second.afterRange = func(n int) { ranges = n }
		if err := second.Step(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		o := outcome(t, db)
		if o.EndedMS == 0 || !o.Findings.OK || o.Fault != "" || o.Findings.Checked["accounts"] != accounts || ranges != accounts-2+1 {
			t.Errorf("got %+v after %d more ranges, want a complete audit of %d accounts after %d", o, ranges, accounts, accounts-2+1)
		}
		takeOver(t, second, "")
	})
}

// TestAuditTakenOverInTheMiddle declares a node dead while it runs an audit. The node stops, and the
// outcome of the other node stays.
func TestAuditTakenOverInTheMiddle(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		first, second := newNodeAudits(t, db), newNodeAudits(t, db)
		run := begin(t, first)
		first.afterRange = func(ranges int) {
			if ranges > 1 {
				t.Errorf("the first node audited %d ranges, want only 1 before the loss of the audit", ranges)
			}
			fence(t, db, first.node.Epoch())
			takeOver(t, second, run)
			if err := second.Step(t.Context(), run); err != nil {
				t.Error(err)
			}
		}
		if err := first.Step(t.Context(), run); !errors.Is(err, errTakenOver) {
			t.Errorf("the first node's audit: got %v, want errTakenOver", err)
		}
		if o := outcome(t, db); o.EndedMS == 0 || !o.Findings.OK || o.Fault != "" {
			t.Errorf("got %+v, want the complete audit of the second node", o)
		}
	})
}

// newNodeAudits returns the audits of a new node. A range has one account.
func newNodeAudits(t *testing.T, db *store.DB) *Audits {
	t.Helper()
	n, err := node.Begin(t.Context(), node.Options{DB: db}, "node_"+t.Name()+string(rune('a'+len(nodes(t, db)))))
	if err != nil {
		t.Fatal(err)
	}
	a := NewAudits(db, n, nil, nil)
	a.rangeRows = 1
	return a
}

func nodes(t *testing.T, db *store.DB) []node.Record {
	t.Helper()
	list, err := node.List(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func fence(t *testing.T, db *store.DB, epoch string) {
	t.Helper()
	for _, n := range nodes(t, db) {
		if n.Epoch != epoch {
			continue
		}
		if dead, err := node.Fence(t.Context(), db, epoch, n.Beat); err != nil || !dead {
			t.Fatal(dead, err)
		}
	}
}

// begin starts an audit and returns its id.
func begin(t *testing.T, a *Audits) string {
	t.Helper()
	if began, err := a.Begin(t.Context(), Actor{Way: "console"}); err != nil || !began {
		t.Fatal(began, err)
	}
	return <-a.next
}

func takeOver(t *testing.T, a *Audits, want string) {
	t.Helper()
	if run, err := a.TakeOver(t.Context()); err != nil || run != want {
		t.Errorf("TakeOver: got %q, %v; want %q", run, err, want)
	}
}

func outcome(t *testing.T, db *store.DB) AuditOutcome {
	t.Helper()
	list, err := store.Read(t.Context(), db, func(tx *store.Tx) ([]AuditOutcome, error) { return AuditsTx(tx, 10) })
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	return list[0]
}
