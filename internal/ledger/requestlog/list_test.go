package requestlog

import (
	"context"
	"fmt"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// insertReceipts inserts receipts $1 to $2, numbered as n.i.
const insertReceipts = `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code,
		line, attempts, prompt_tokens, cached_tokens, completion_tokens, cost_nano, over_nano, held_nano, balance_nano,
		first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)
	WITH RECURSIVE n (i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < $2) `

// listRows is the number of receipts in fillLists.
const listRows = 6_000

// fillLists writes receipts: half of them are of account a0, one in twenty failed, and one in a
// hundred is of a rare model and line. Refusals have the number of the end before them.
func fillLists(t *testing.T, db *store.DB) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(insertReceipts+`
			SELECT 'req_' || CAST(100000 + i AS TEXT), 'a' || CAST(CASE WHEN i % 2 = 0 THEN 0 ELSE i % 199 END AS TEXT),
			i - CASE WHEN i % 20 = 0 THEN 2 ELSE 0 END, 'k' || CAST(CASE WHEN i % 4 = 0 THEN 0 ELSE i % 8 END AS TEXT),
			CASE WHEN i % 100 = 50 THEN 'rare' ELSE 'm' || CAST(i % 5 AS TEXT) END, 'e', 0, 1, CASE WHEN i % 20 = 0 THEN 4 ELSE 1 END,
			CASE WHEN i % 20 = 0 THEN 502 ELSE 200 END, CASE WHEN i % 40 = 0 THEN 'busy' ELSE '' END,
			CASE WHEN i % 100 = 50 THEN 'rare' ELSE 'l' || CAST(i % 3 AS TEXT) END, '[]',
			0, 0, 0, i % 2, 0, 1, 0, 0, CASE WHEN i % 60 = 0 THEN 20000 WHEN i % 6 = 0 THEN 700 ELSE 0 END, 0, 0, 1, '' FROM n`, 1, listRows)
		return err
	})
	account(t, db, "a0", listRows, "k0", "k2")
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt WHERE account = 'a0'`)
		return err
	})
	update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
}

// account writes an account with the newest number seq and with keys.
func account(t *testing.T, db *store.DB, id string, seq int64, keys ...string) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		if _, err := tx.Exec(`INSERT INTO ledger_account (id, balance_nano, floor_nano, disabled, seq)
			VALUES ($1, 0, 0, 0, $2)`, id, seq); err != nil {
			return err
		}
		for _, key := range keys {
			if _, err := tx.Exec(`INSERT INTO ledger_key (id, account, version, disabled, closed, rpm, daily_budget_nano, total_limit_nano,
				spent_nano, last_used_ms) VALUES ($1, $2, 0, 0, 0, -1, -1, -1, 0, 0)`,
				key, id); err != nil {
				return err
			}
		}
		return nil
	})
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

// eachFilter calls fn with all combinations of the log's filters.
func eachFilter(fn func(f Selection)) {
	texts := func(value string) []string { return []string{"", value} }
	for _, account := range texts("a0") {
		for _, model := range texts("m2") {
			for _, line := range texts("l1") {
				for _, status := range []int{0, 200, 502} {
					for _, key := range texts("k0") {
						for _, code := range texts("busy") {
							for _, slow := range []int64{0, 500, slowMS, slowMS + 1} {
								fn(Selection{Account: account, Model: model, Line: line, Status: status, Limit: 50, Key: key, Code: code, MinDurationMS: slow})
							}
						}
					}
				}
			}
		}
	}
}

// TestListsWalkIndexes checks the query plan of each list on both databases.
func TestListsWalkIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillLists(t, db)
		view(t, db, func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			check := func(name, text string, args ...any) { storetest.WalksIndex(t, tx, name, text, args...) }
			eachFilter(func(f Selection) {
				l := listing{tx: tx, Selection: f, pos: top}
				if f.Key != "" {
					l.Account = "a0"
				}
				for _, low := range []position{bottom, {seq: 1000, id: "req_101000"}} {
					text, args := l.read(low)
					check(fmt.Sprintf("requests %+v", f), text, args...)
					text, args = l.edge(low, firstStep)
					check(fmt.Sprintf("a step of %+v", f), text, args...)
					l.SinceMS, l.UntilMS, l.pos = 1, 1<<40, position{3000, "req_103000"}
				}
			})
			check("after a request", afterReceipt, "req_103000", "a0")
			check("segments", segmentsBelow, "k0", 40, 0, segmentsRead)
			check("the end of a segment", lastBelow, "a0", 1000, "req_101000")
			check("the oldest receipt", oldestSeq, "a0")
			check("the oldest receipt of a moved partition", oldestOld, "a0")
			return nil
		})
	})
}

// owner returns the account of the selected requests.
func owner(f Selection) string {
	if f.Key != "" {
		return "a0"
	}
	return f.Account
}

// TestListsPage pages through the log with each combination of filters. Pages end among equal
// numbers and at the edges of segments: each request appears exactly once, and no other request.
func TestListsPage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillLists(t, db)
		view(t, db, func(tx *store.Tx) error {
			eachFilter(func(f Selection) {
				f.Limit = 199
				seen := map[string]bool{}
				last := Receipt{}
				for more := true; more; {
					page, err := ListTx(tx, f)
					if err != nil {
						t.Fatalf("%+v: %v", f, err)
					}
					for _, r := range page.Receipts {
						if seen[r.ID] || (f.Account != "" && r.Account != f.Account) || (f.Model != "" && r.Model != f.Model) ||
							(f.Line != "" && r.Line != f.Line) || (f.Status != 0 && r.Status != f.Status) ||
							(f.Key != "" && r.Key != f.Key) || (f.Code != "" && r.Code != f.Code) || r.DurationMS < f.MinDurationMS ||
							last.ID != "" && owner(f) == "" && r.ID > last.ID {
							t.Fatalf("%+v shows %+v after %s, want each selected request once, newest first", f, r, last.ID)
						}
						seen[r.ID], last = true, r
					}
					more, f.After = page.More, page.Next
				}
				var want int
				err := tx.QueryRow(`SELECT COUNT(*) FROM ledger_receipt WHERE (account = $1 OR $1 = '') AND (model = $2 OR $2 = '')
					AND (line = $3 OR $3 = '') AND (status = $4 OR $4 = 0) AND (code = $5 OR $5 = '') AND duration_ms >= $6
					AND (account = $7 OR $7 = '') AND (key = $8 OR $8 = '')`,
					f.Account, f.Model, f.Line, f.Status, f.Code, f.MinDurationMS, owner(f), f.Key).Scan(&want)
				if err != nil || len(seen) != want {
					t.Errorf("%+v: %d requests, want %d (%v)", f, len(seen), want, err)
				}
			})
			return nil
		})
	})
}

// examine lists with a filter and returns the number of examined receipts.
func examine(t *testing.T, tx *store.Tx, f Selection) (Page, int) {
	t.Helper()
	l, err := listTx(tx, f)
	if err != nil {
		t.Fatal(err)
	}
	return l.page, maxExamined - l.left
}

// busyRows is the number of requests of the busy account.
const busyRows = 3*maxExamined - 10

// busy writes the log of an account with one busy key and one rare key, used once in five thousand
// requests. There is one request a second. The oldest request has a rare model.
func busy(t *testing.T, db *store.DB, since int64) {
	t.Helper()
	account(t, db, "a0", busyRows, "often", "rare")
	before := firstRequest(since)
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(insertReceipts+`
			SELECT $3 || CAST(100000 + i AS TEXT), 'a0', i, CASE WHEN i % 5000 = 0 THEN 'rare' ELSE 'often' END,
			CASE WHEN i = 7 THEN 'old' ELSE 'm' END, 'e', 0, 1, 1, 200, '', 'l', '[]',
			0, 0, 0, 0, 0, 1, 0, 0, 0, $4 + i * 1000, $4 + i * 1000 + 500, 1, '' FROM n`, 1, busyRows, before, since)
		return err
	})
	update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
}

func recordSegments(t *testing.T, db *store.DB) {
	t.Helper()
	update(t, db, func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt WHERE account = 'a0'
			ON CONFLICT DO NOTHING`)
		return err
	})
}

// TestRareKeyIsFoundBySegments checks that a list of a key reads only the segments of the log with
// the key's receipts, for any length of the log.
func TestRareKeyIsFoundBySegments(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		busy(t, db, 1_800_000_000_000)
		recordSegments(t, db)
		view(t, db, func(tx *store.Tx) error {
			page, n := examine(t, tx, Selection{Key: "rare", Limit: 50})
			var got []string
			for _, r := range page.Receipts {
				got = append(got, r.ID)
			}
			if page.More || len(got) != busyRows/5000 || n > len(got)*segmentRows {
				t.Errorf("got %d receipts of %d examined, more %v; want %d of at most %d", len(got), n, page.More, busyRows/5000, len(got)*segmentRows)
			}
			if page, n = examine(t, tx, Selection{Key: "rare", Limit: 5}); len(page.Receipts) != 5 || !page.More || n > 5*segmentRows {
				t.Errorf("a page of 5: got %d receipts of %d examined, more %v; want 5 of at most %d, and more",
					len(page.Receipts), n, page.More, 5*segmentRows)
			}
			if page, n = examine(t, tx, Selection{Key: "rare", Model: "none", Limit: 50}); len(page.Receipts) != 0 ||
				page.More || n > len(got)*segmentRows {
				t.Errorf("an unknown model: got %d receipts of %d examined, more %v; want none of at most %d",
					len(page.Receipts), n, page.More, len(got)*segmentRows)
			}
			return nil
		})
	})
}

// TestPageExaminesBoundedRows checks that with every filter a page examines a bounded number of
// receipts and reports the oldest examined time, and that the next page continues there.
func TestPageExaminesBoundedRows(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const since = 1_800_000_000_000
		busy(t, db, since)
		recordSegments(t, db)
		view(t, db, func(tx *store.Tx) error {
			for _, f := range []Selection{{Model: "old", Limit: 50}, {Account: "a0", Model: "old", Limit: 50},
				{Account: "a0", Key: "often", Model: "old", Limit: 50}} {
				pages := 0
				for more := true; more; pages++ {
					page, n := examine(t, tx, f)
					bound, exact := maxExamined, since+int64(busyRows-maxExamined*(pages+1)+1)*1000
					if f.Key != "" { // the page ends with a group of segments
						bound, exact = maxExamined+segmentsJoined*segmentRows, page.BackMS
					}
					if n > bound || page.More && (len(page.Receipts) > 0 || page.BackMS != exact) {
						t.Errorf("%+v: page %d examined %d receipts back to %d, want at most %d back to %d",
							f, pages, n, page.BackMS-since, bound, exact-since)
					}
					if more, f.After = page.More, page.Next; !more && (len(page.Receipts) != 1 || page.Receipts[0].Model != "old") {
						t.Errorf("%+v: got %+v, want the request with the model old", f, page.Receipts)
					}
				}
				if pages != 3 {
					t.Errorf("%+v: got %d pages, want 3", f, pages)
				}
			}
			return nil
		})
	})
}

// TestSpanOfAnAccountIsFound checks that a span of time in an account's log is found without
// examining newer or older rows. The span has requests that ended within a day of their arrival,
// and refusals, which have the number of the end before them.
func TestSpanOfAnAccountIsFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const since, hour, day, rows = int64(1_800_000_000_000), int64(3_600_000), 24 * int64(3_600_000), int64(2_000)
		account(t, db, "a0", 100*rows, "k")
		insert := func(from, to, created, ended int64, id, seq string) {
			t.Helper()
			update(t, db, func(tx *store.Tx) error {
				_, err := tx.Exec(insertReceipts+`SELECT $3 || CAST(100000 + i AS TEXT), 'a0', `+seq+`, 'k', 'm', 'e', 0, 1, 1, 200, '', 'l', '[]',
					0, 0, 0, 0, 0, 1, 0, 0, 0, $4, $5, 1, '' FROM n`, from, to, id, created, ended)
				return err
			})
		}
		for d := range int64(10) { // these requests end within the hour
			insert(d*rows+1, (d+1)*rows, since+d*day, since+d*day+hour, firstRequest(since+d*day), "10 * i")
		}
		late := firstRequest(since+3*day) + "a"
		insert(4*rows+2, 4*rows+2, since+3*day, since+4*day+hour, late, "10 * i - 5") // ended among the requests of the fourth day
		insert(5*rows+2, 5*rows+2, since+3*day, since+5*day+hour, late, "10 * i - 5") // took two days
		refused := firstRequest(since + 10*day)
		insert(1, 9, since+10*day, since+10*day, refused, fmt.Sprint(10*10*rows)) // nothing has ended since the ninth day
		update(t, db, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err })
		view(t, db, func(tx *store.Tx) error {
			list := func(f Selection) (found int64, through int) {
				t.Helper()
				f.Account, f.Limit = "a0", 500
				for more := true; more; {
					page, n := examine(t, tx, f)
					for _, r := range page.Receipts {
						if r.CreatedMS < f.SinceMS || f.UntilMS > 0 && r.CreatedMS >= f.UntilMS {
							t.Fatalf("%+v has %+v, want only requests of the span", f, r)
						}
					}
					found, through = found+int64(len(page.Receipts)), max(through, n)
					more, f.After = page.More, page.Next
				}
				return found, through
			}
			for name, test := range map[string]struct {
				f    Selection
				want int64
			}{
				"a day":                {Selection{SinceMS: since + 3*day, UntilMS: since + 4*day}, rows + 1},
				"the last days":        {Selection{SinceMS: since + 9*day}, rows + 9},
				"refusals alone":       {Selection{SinceMS: since + 10*day}, 9},
				"before the refusals":  {Selection{SinceMS: since + 9*day, UntilMS: since + 10*day}, rows},
				"up to the second day": {Selection{UntilMS: since + 2*day}, 2 * rows},
				"all":                  {Selection{}, 10*rows + 11},
			} {
				if found, through := list(test.f); found != test.want || int64(through) > 3*rows {
					t.Errorf("%s: %d requests, want %d; a page examined %d, want at most %d", name, found, test.want, through, 3*rows)
				}
			}
			return nil
		})
	})
}

// TestSegmentsAreDeleted checks that the record of a segment is deleted with the last receipt of
// the segment and of all earlier ones.
func TestSegmentsAreDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		fillLists(t, db)
		recordSegments(t, db)
		segments := func() (n, first int64) {
			view(t, db, func(tx *store.Tx) error {
				return tx.QueryRow(`SELECT COUNT(*), COALESCE(MIN(part), -1) FROM ledger_key_part WHERE key = 'k0'`).Scan(&n, &first)
			})
			return n, first
		}
		all, _ := segments()
		if all != listRows/segmentRows+1 {
			t.Errorf("%d segments are recorded, want %d", all, listRows/segmentRows+1)
		}
		forget := func(below int64) {
			t.Helper()
			update(t, db, func(tx *store.Tx) error {
				if _, err := tx.Exec(`DELETE FROM ledger_receipt WHERE account = 'a0' AND seq < $1`, below); err != nil {
					return err
				}
				return TrimIndexTx(tx, "a0", Deleted{Keys: []string{"k0", "none", "k0"}, Last: below - 1})
			})
		}
		forget(10*segmentRows + 4)
		if n, first := segments(); n != all-10 || first != 10 {
			t.Errorf("%d segments from %d on, want %d from 10 on", n, first, all-10)
		}
		forget(listRows + 1)
		if n, first := segments(); n != 1 || first != listRows/segmentRows {
			t.Errorf("%d segments from %d on, want only segment %d", n, first, listRows/segmentRows)
		}
	})
}
