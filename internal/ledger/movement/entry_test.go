package movement

import (
	"context"
	"testing"

	"tollgate/internal/id"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestListsWalkIndexes asks both databases how they would list and find
// movements.
func TestListsWalkIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) `
		bytes := "BYTEA"
		if db.Dialect() == store.SQLite {
			bytes = "BLOB"
		}
		update := func(text string, args ...any) {
			t.Helper()
			if err := db.Update(context.Background(), func(tx *store.Tx) error { _, err := tx.Exec(text, args...); return err }); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range []string{
			`INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line, attempts,
				prompt_tokens, cached_tokens, completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano,
				first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)` + numbers + `
			SELECT 'req_' || CAST(100000 + i AS TEXT), 'a' || CAST(i % 199 AS TEXT), i, 'k', 'm', 'e', 0, 1, 1, 200, '', 'l', '[]',
				0, 0, 0, 0, i % 2, 0, 1, 0, 0, 0, 0, 0, 1, '' FROM n`,
			`INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms)` + numbers + `
			SELECT 'ent_' || CAST(100000 + i AS TEXT), 'a' || CAST(i % 199 AS TEXT), 100000 + i, 'credit', 0, 1, 0, '', 0 FROM n`,
			`INSERT INTO ledger_charge (account, model, seq, amount_nano, balance_nano, ended_ms, request, job)` + numbers + `
			SELECT i % 199, 200, 200000 + i, 1, 0, 0, CAST('c' || CAST(100000 + i AS TEXT) AS ` + bytes + `), CAST('' AS ` + bytes + `) FROM n`,
			`INSERT INTO ledger_word (id, word)` + numbers + ` SELECT i - 1, 'a' || CAST(i - 1 AS TEXT) FROM n`,
		} {
			update(text, 6000)
		}
		update(`ANALYZE`)
		packed := id.Pack(RequestPrefix, "req_103000")
		page := []any{"a0", int64(1) << 62, 51}
		err := db.View(context.Background(), func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			storetest.WalksIndex(t, tx, "movements", movesPage, page...)
			storetest.WalksIndex(t, tx, "charges", chargesPage, page...)
			storetest.WalksIndex(t, tx, "kept charges", keptPage, page...)
			storetest.WalksIndex(t, tx, "a kept charge", chargeText, packed)
			storetest.WalksIndex(t, tx, "after an entry", entrySeq, "a0", "req_103000", packed)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
