package movement

import (
	"context"
	"fmt"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// TestListsWalkIndexes checks the query plans of the lists on both databases.
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
				prompt_tokens, cached_tokens, completion_tokens, cost_nano, over_nano, held_nano, balance_nano,
				first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)` + numbers + `
			SELECT 'req_' || CAST(100000 + i AS TEXT), 'a' || CAST(i % 199 AS TEXT), i, 'k', 'm', 'e', 0, 1, 1, 200, '', 'l', '[]',
				0, 0, 0, i % 2, 0, 1, 0, 0, 0, 0, 0, 1, '' FROM n`,
			`INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)` + numbers + `
			SELECT 'ent_' || CAST(100000 + i AS TEXT), 'a' || CAST(i % 199 AS TEXT), 100000 + i, 'credit', 1, 0, '', 0 FROM n`,
			`INSERT INTO ledger_charge (account, model, seq, amount_nano, balance_nano, ended_ms, request, job)` + numbers + `
			SELECT i % 199, 200, 200000 + i, 1, 0, 0, CAST('c' || CAST(100000 + i AS TEXT) AS ` + bytes + `), CAST('' AS ` + bytes + `) FROM n`,
			`INSERT INTO ledger_word (id, word)` + numbers + ` SELECT i - 1, 'a' || CAST(i - 1 AS TEXT) FROM n`,
		} {
			update(text, 6000)
		}
		update(`ANALYZE`)
		packed := id.Pack(RequestPrefix, "req_103000")
		page := []any{"a0", int64(1) << 62, 0, 51}
		err := db.View(context.Background(), func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			storetest.WalksIndex(t, tx, "movements", movesPage, page...)
			storetest.WalksIndex(t, tx, "credits since", creditsSince, "a0", 0)
			storetest.WalksIndex(t, tx, "the newest", newestSeq, "a0")
			for _, next := range []string{nextEntry, nextReceipt, nextKept} {
				storetest.WalksIndex(t, tx, "the next", next, "a0", 5)
			}
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

// TestFilter lists movements by kind and time, page by page.
func TestFilter(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const day = 24 * 60 * 60 * 1000
		if err := db.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.Exec(`INSERT INTO ledger_word (id, word) VALUES (1, 'a'), (2, 'm')`); err != nil {
				return err
			}
			for i := range 40 { // a credit, a charge with a receipt, a kept charge and a take-back in turn, one each hour
				at := day + int64(i)*60*60*1000
				text := `INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
					VALUES ($1, 'a', $2, 'credit', 7, 0, '', $3)`
				switch i % 4 {
				case 1:
					text = `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line,
						attempts, prompt_tokens, cached_tokens, completion_tokens, cost_nano, over_nano, held_nano, balance_nano,
						first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)
						VALUES ($1, 'a', $2, 'k', 'm', 'e', 0, 1, 1, 200, '', 'l', '[]', 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, $3, 1, '')`
				case 2:
					if _, err := tx.Exec(`INSERT INTO ledger_charge (account, model, seq, amount_nano, balance_nano, ended_ms, request, job)
						VALUES (1, 2, $1, 5, 0, $2, $3, $4)`, i, at, id.Pack(RequestPrefix, id.New(RequestPrefix)), []byte{}); err != nil {
						return err
					}
					continue
				case 3:
					text = `INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
						VALUES ($1, 'a', $2, 'take_back', -1, 0, '', $3)`
				}
				if _, err := tx.Exec(text, fmt.Sprintf("req_%d", i), i, at); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			filter Selection
			want   int
		}{
			{Selection{}, 40}, {Selection{Kind: Credits}, 20}, {Selection{Kind: Charges}, 20},
			{Selection{SinceMS: 2 * day}, 16}, {Selection{UntilMS: 2 * day}, 24}, {Selection{SinceMS: 2 * day, UntilMS: 2*day + 1}, 1},
			{Selection{Kind: Charges, SinceMS: day, UntilMS: 2 * day}, 12}, {Selection{Kind: Credits, UntilMS: day}, 0},
			{Selection{SinceMS: 9 * day}, 0},
		} {
			f, count := test.filter, 0
			f.Account, f.Limit = "a", 3
			if err := db.View(t.Context(), func(tx *store.Tx) error {
				for more := true; more; {
					list, next, err := ListTx(tx, f)
					if err != nil {
						return err
					}
					for _, e := range list {
						f.After = e.ID
						if e.CreatedMS < f.SinceMS || f.UntilMS > 0 && e.CreatedMS >= f.UntilMS || (e.Kind == kindCharge) == (f.Kind == Credits) &&
							f.Kind != "" {
							t.Errorf("%+v has %+v, want only movements of its kind and span", test.filter, e)
						}
					}
					count, more = count+len(list), next
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if count != test.want {
				t.Errorf("%+v has %d movements, want %d", test.filter, count, test.want)
			}
		}
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			given, err := CreditEntriesTx(tx, "a", 2)
			if err != nil || len(given) == 0 {
				t.Errorf("got %+v, %v; want the credits of day 2", given, err)
			}
			var credits, back money.Amount
			for _, g := range given {
				if g.Day != 2 {
					t.Errorf("got %+v, want day 2", g)
				}
				credits, back = credits+max(0, g.Amount), back+min(0, g.Amount)
			}
			if credits != 4*7 || back != -4 {
				t.Errorf("got credits of %s and take-backs of %s, want 28 and -4 nano-dollars", credits, back)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	})
}
