package ledger

import (
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestReferenceIsFoundByIndex checks the query plan of the lookup on both databases.
func TestReferenceIsFoundByIndex(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		update(t, db, func(tx *store.Tx) error {
			if err := OpenAccountTx(tx, "a", 0); err != nil {
				return err
			}
			_, err := tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, reference, created_ms)
				WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
				SELECT 'ent_' || CAST(i AS TEXT), 'b', i, 'credit', 1, 0, '', 'pi_' || CAST(i AS TEXT), 0 FROM n`)
			return err
		})
		update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
		update(t, db, func(tx *store.Tx) error {
			storetest.WalksIndex(t, tx, "a reference", selectReference, "pi_5000")
			m, err := MoveTx(tx, "a", Payment{Amount: money.USD, Reference: "pi_6001"})
			if err == nil && (m.Repeated || m.Balance != money.USD) {
				t.Errorf("got %+v, want a new movement and a balance of 1", m)
			}
			return err
		})
	})
}
