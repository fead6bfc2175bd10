package operator_test

import (
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestStatement credits two accounts in two months, marks a credit as paid, and reads the statements.
func TestStatement(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, clock *storetest.Clock) {
		var acme, beta account.Account
		move := func(id string, p ledger.Payment) {
			t.Helper()
			storetest.Update(t, db, func(tx *store.Tx) error {
				_, err := ledger.MoveTx(tx, id, p)
				return err
			})
		}
		storetest.Update(t, db, func(tx *store.Tx) (err error) {
			if acme, err = account.CreateTx(tx, account.NewAccount{Name: "Acme"}); err != nil {
				return err
			}
			beta, err = account.CreateTx(tx, account.NewAccount{Name: "Beta"})
			return err
		})
		move(acme.ID, ledger.Payment{Amount: 50 * money.USD, Note: "invoice 1"})
		move(acme.ID, ledger.Payment{Amount: 20 * money.USD, Paid: true, Note: "top-up topup_1"})
		move(acme.ID, ledger.Payment{Amount: 3 * money.USD, Trial: true})
		clock.Advance(15 * 24 * time.Hour) // December
		move(acme.ID, ledger.Payment{Amount: -10 * money.USD, Note: "too much"})
		move(beta.ID, ledger.Payment{Amount: 7 * money.USD})
		want := func(month string, rows ...operator.StatementRow) {
			t.Helper()
			s, err := store.Read(t.Context(), db, func(tx *store.Tx) (operator.Statement, error) { return operator.StatementTx(tx, month) })
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Rows) != len(rows) {
				t.Errorf("%s: got %+v, want %+v", month, s.Rows, rows)
				return
			}
			for i, r := range rows {
				if s.Rows[i] != r {
					t.Errorf("%s: got %+v, want %+v", month, s.Rows[i], r)
				}
			}
			if raw, err := s.Sheet().PDF(); err != nil || len(raw) == 0 {
				t.Errorf("%s: got a file of %d bytes, %v; want a PDF file", month, len(raw), err)
			}
		}
		november := operator.StatementRow{Account: acme.ID, Name: "Acme", Paid: 20 * money.USD, Unpaid: 50 * money.USD, Trial: 3 * money.USD,
			Due: 50 * money.USD, Balance: 73 * money.USD}
		want("2026-11", november)
		december := []operator.StatementRow{
			{Account: acme.ID, Name: "Acme", Unpaid: -10 * money.USD, Due: 40 * money.USD, Balance: 63 * money.USD},
			{Account: beta.ID, Name: "Beta", Unpaid: 7 * money.USD, Due: 7 * money.USD, Balance: 7 * money.USD}}
		want("2026-12", december...)
		mark := func(note string, paid bool) error {
			return db.Update(t.Context(), func(tx *store.Tx) error {
				list, _, err := movement.ListTx(tx, movement.Selection{Account: acme.ID, Limit: 10})
				for _, e := range list {
					if e.Note == note {
						_, err = operator.MarkPaidTx(tx, operator.Actor{Way: operator.Token}, e.ID, paid)
					}
				}
				return err
			})
		}
		for range 2 { // the second mark changes nothing
			if err := mark("invoice 1", true); err != nil {
				t.Fatal(err)
			}
		}
		november.Paid, november.Unpaid, november.Due = 70*money.USD, 0, 0
		want("2026-11", november)
		december[0].Due = -10 * money.USD
		want("2026-12", december...)
		for _, note := range []string{"top-up topup_1", ""} {
			if err := mark(note, false); err == nil {
				t.Errorf("marking the movement %q: got no error, want one", note)
			}
		}
		log, err := store.Read(t.Context(), db, func(tx *store.Tx) ([]operator.LogRow, error) {
			rows, _, err := operator.LogTx(tx, operator.LogFilter{Act: operator.EntryChange, Limit: 10})
			return rows, err
		})
		if err != nil || len(log) != 1 || log[0].After["paid"] != true || log[0].Account != acme.ID {
			t.Errorf("log: got %+v, %v; want one change of Acme's credit", log, err)
		}
		for _, month := range []string{"2027-01", "2026", "x", "1969-12"} {
			_, err := store.Read(t.Context(), db, func(tx *store.Tx) (operator.Statement, error) { return operator.StatementTx(tx, month) })
			if err == nil {
				t.Errorf("statement of %s: got no error, want a 404", month)
			}
		}
	})
}
