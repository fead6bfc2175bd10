package ledger

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// listRows is how many receipts the lists are planned and read with.
const listRows = 6_000

// fillLists writes receipts: half of them are of account a0, one in twenty
// failed, and one in a hundred is of a rare model and line. Refusals have the
// number of what came before them.
func fillLists(t *testing.T, db *store.DB) {
	t.Helper()
	const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1) `
	for _, text := range []string{
		`INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line, attempts,
			prompt_tokens, cached_tokens, completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano,
			first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)` + numbers + `
		SELECT 'req_' || CAST(100000 + i AS TEXT), 'a' || CAST(CASE WHEN i % 2 = 0 THEN 0 ELSE i % 199 END AS TEXT),
			i - CASE WHEN i % 20 = 0 THEN 2 ELSE 0 END, 'k', CASE WHEN i % 100 = 50 THEN 'rare' ELSE 'm' || CAST(i % 5 AS TEXT) END, 'e', 0, ` +
			`1, CASE WHEN i % 20 = 0 THEN 4 ELSE 1 END,
			CASE WHEN i % 20 = 0 THEN 502 ELSE 200 END, CASE WHEN i % 40 = 0 THEN 'busy' ELSE '' END,
			CASE WHEN i % 100 = 50 THEN 'rare' ELSE 'l' || CAST(i % 3 AS TEXT) END, '[]',
			0, 0, 0, 0, i % 2, 0, 1, 0, 0, CASE WHEN i % 60 = 0 THEN 20000 WHEN i % 6 = 0 THEN 700 ELSE 0 END, 0, 0, 1, '' FROM n`,
		`INSERT INTO ledger_over (account, key, line, over_nano)` + numbers + `
		SELECT 'a' || CAST(i % 500 AS TEXT), 'k' || CAST(i / 500 AS TEXT), 'l' || CAST(i % 40 AS TEXT), 1 FROM n`,
	} {
		update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(text, listRows); return err })
	}
	update(t, db, func(tx *store.Tx) error { return OpenKeyTx(tx, "k", "a0", KeyLimits{}) })
	update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
}

func update(t *testing.T, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

func view(t *testing.T, db *store.DB, fn func(tx *store.Tx) error) {
	t.Helper()
	if err := db.View(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// eachFilter calls fn with all combinations of what the log can be chosen by.
func eachFilter(fn func(f RequestFilter)) {
	texts := func(value string) []string { return []string{"", value} }
	for _, account := range texts("a0") {
		for _, model := range texts("m2") {
			for _, line := range texts("l1") {
				for _, status := range []int{0, 200, 502} {
					f := RequestFilter{Account: account, Model: model, Line: line, Status: status, Limit: 50}
					fn(f)
					for _, key := range texts("k") {
						for _, code := range texts("busy") {
							for _, slow := range []int64{0, 500, slowMS} {
								f.Key, f.Code, f.MinDurationMS = key, code, slow
								fn(f)
							}
						}
					}
				}
			}
		}
	}
}

// TestListsWalkIndexes asks both databases how they would read each list.
func TestListsWalkIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillLists(t, db)
		view(t, db, func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			check := func(name, text string, args ...any) { storetest.WalksIndex(t, tx, name, text, args...) }
			eachFilter(func(f RequestFilter) {
				text, args := f.statement(0)
				check(fmt.Sprintf("requests %+v", f), text, args...)
				f.After, f.SinceMS, f.UntilMS = "req_103000", 1, 1<<40
				text, args = f.statement(3000)
				check(fmt.Sprintf("requests %+v", f), text, args...)
			})
			check("a step of the log", stepRows, "a0", 3000, 50)
			text, args := RequestFilter{Account: "a0", Key: "k", SinceMS: 1, Limit: 50, fromSeq: 1000, belowSeq: 2000}.statement(0)
			check("requests of a step", text, args...)
			some := store.List([]string{"a1", "a2"})
			check("after a request", afterReceipt, "req_103000", "a0")
			check("over of requests", overOfRequests(tx), store.List([]string{"req_103000"}))
			for name, plan := range map[string][]string{
				"accounts": storetest.Plan(t, tx, overOfAccounts(tx), some),
				"keys":     storetest.Plan(t, tx, overOfKeys(tx), some, some),
				"lines":    storetest.Plan(t, tx, overOfLines(tx), store.List([]string{"l1"})),
			} {
				if slices.ContainsFunc(plan, storetest.ReadsAll) { // what it reads is summed, in whatever order
					t.Errorf("over of %s: %q", name, plan)
				}
			}
			return nil
		})
	})
}

// owner is whose requests are to be found: a key's are those of its account.
func owner(f RequestFilter) string {
	if f.Key != "" {
		return "a0"
	}
	return f.Account
}

// TestListsPage pages through the log with each combination of filters, by pages
// that end among equal numbers: each request is there once, and no other.
func TestListsPage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillLists(t, db)
		view(t, db, func(tx *store.Tx) error {
			eachFilter(func(f RequestFilter) {
				if f.Key != "" && f.Model != "" {
					return // enough has been read
				}
				f.Limit = 599
				seen := map[string]bool{}
				for more := true; more; {
					var page []Receipt
					var err error
					if page, more, err = RequestsTx(tx, f); err != nil {
						t.Fatalf("%+v: %v", f, err)
					}
					for _, r := range page {
						if seen[r.ID] || (f.Account != "" && r.Account != f.Account) || (f.Model != "" && r.Model != f.Model) ||
							(f.Line != "" && r.Line != f.Line) || (f.Status != 0 && r.Status != f.Status) ||
							(f.Key != "" && r.Key != f.Key) || (f.Code != "" && r.Code != f.Code) || r.DurationMS < f.MinDurationMS {
							t.Fatalf("%+v shows %+v", f, r)
						}
						seen[r.ID] = true
						f.After = r.ID
					}
				}
				var want int
				err := tx.QueryRow(`SELECT COUNT(*) FROM ledger_receipt WHERE (account = $1 OR $1 = '') AND (model = $2 OR $2 = '')
					AND (line = $3 OR $3 = '') AND (status = $4 OR $4 = 0) AND (code = $5 OR $5 = '') AND duration_ms >= $6
					AND (account = $7 OR $7 = '')`, f.Account, f.Model, f.Line, f.Status, f.Code, f.MinDurationMS, owner(f)).Scan(&want)
				if err != nil || len(seen) != want {
					t.Errorf("%+v: %d requests, want %d (%v)", f, len(seen), want, err)
				}
			})
			return nil
		})
	})
}

// TestSpanEndsTheWalk: what came before a span is not looked through for a key that was
// hardly used, and all that came within it is there.
func TestSpanEndsTheWalk(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const since, rows = int64(1_800_000_000_000), 3 * logStep
		// One in a thousand is of the key, all older than the span but for the last one.
		// Far back is one whose id cannot be: it says how far was looked.
		insert := `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line, attempts,
				prompt_tokens, cached_tokens, completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano,
				first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)
			WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $1)
			SELECT $2 || CAST(100000 + i AS TEXT), 'a0', i, CASE WHEN i % 1000 = 0 THEN 'rare' ELSE 'k' END, 'm', 'e', 0, 1, 1, 200, '', 'l', '[]',
				0, 0, 0, 0, 0, 0, 1, 0, 0, 0, $3, $4, 1, '' FROM n WHERE i > $5`
		before, within := firstRequest(since-10*nodeSkew.Milliseconds()), firstRequest(since)
		update(t, db, func(tx *store.Tx) error {
			if err := OpenKeyTx(tx, "rare", "a0", KeyLimits{}); err != nil {
				return err
			}
			_, err := tx.Exec(insert, rows-1000, before, since, since-5*nodeSkew.Milliseconds(), 0)
			return err
		})
		update(t, db, func(tx *store.Tx) error {
			if _, err := tx.Exec(insert, rows, within, since, since+1, rows-1000); err != nil {
				return err
			}
			_, err := tx.Exec(`UPDATE ledger_receipt SET id = $1 WHERE seq = 1000`, within+"0")
			return err
		})
		view(t, db, func(tx *store.Tx) error {
			f := RequestFilter{Key: "rare", SinceMS: since, Limit: 50}
			got, more, err := RequestsTx(tx, f)
			if err != nil || more || len(got) != 1 {
				t.Errorf("within the span: %d, more %v, %v", len(got), more, err)
			}
			f.SinceMS = 1
			if got, more, err = RequestsTx(tx, f); err != nil || more || len(got) != rows/1000 {
				t.Errorf("in all: %d, more %v, %v", len(got), more, err)
			}
			f.Limit = 4
			seen := map[string]bool{}
			for more = true; more; f.After = got[len(got)-1].ID {
				if got, more, err = RequestsTx(tx, f); err != nil {
					return err
				}
				for _, r := range got {
					seen[r.ID] = true
				}
			}
			if len(seen) != rows/1000 {
				t.Errorf("by pages: %d", len(seen))
			}
			return nil
		})
	})
}
