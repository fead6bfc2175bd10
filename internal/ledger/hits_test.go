package ledger

import (
	"fmt"
	"testing"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// TestFoldDeletesOldHits checks that Fold deletes all hits outside every rate window, for any
// number and limit, and no other hits.
func TestFoldDeletesOldHits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, young []int64 }{ // hits by key
		"none":                      {[]int64{0}, []int64{0}},
		"one key":                   {[]int64{3 * hitsChunk}, []int64{0}},
		"one key in use":            {[]int64{3 * hitsChunk}, []int64{10}},
		"a chunk":                   {[]int64{hitsChunk}, []int64{0}},
		"a chunk and one":           {[]int64{hitsChunk + 1}, []int64{1}},
		"young ones alone":          {[]int64{0, 0}, []int64{hitsChunk + 1, 7}},
		"many keys":                 {[]int64{100, 2 * hitsChunk, 1, 0, hitsChunk}, []int64{5, 0, 1, hitsChunk, 2}},
		"young ones fill the chunk": {[]int64{0, 40, hitsChunk}, []int64{hitsChunk - 1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachClock(t, func(t *testing.T, db *store.DB, c2 *clock) {
				f := start(t, db)
				rpm := int64(100_000)
				var want int64
				err := db.Update(t.Context(), func(tx *store.Tx) error {
					now := c2.now().UnixMilli()
					fill := func(key string, from, n, atMS int64) error {
						_, err := tx.Exec(`INSERT INTO ledger_hit (key, n, at_ms) WITH RECURSIVE each(i) AS
							(SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM each WHERE i < $2)
							SELECT CAST($3 AS TEXT), i, CAST($4 AS BIGINT) FROM each WHERE i <= $2`, from, from+n-1, key, atMS)
						return err
					}
					for i := range c.old {
						key := fmt.Sprint("key", i)
						if err := fill(key, 1, c.old[i], now); err != nil {
							return err
						}
						if err := fill(key, c.old[i]+1, c.young[i], now+time.Hour.Milliseconds()); err != nil {
							return err
						}
						want += c.young[i]
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				f.open("a", money.USD, 0, KeyLimits{RPM: &rpm})
				for range 12 { // the clock moves in steps that expiry accepts
					c2.add(5 * time.Minute)
					f.mustAdmit("a", 1).Release(failed())
				}
				if err := f.Fold(t.Context()); err != nil {
					t.Fatal(err)
				}
				var left, old int64
				err = db.View(t.Context(), func(tx *store.Tx) error {
					return tx.QueryRow(`SELECT COUNT(*), COALESCE(SUM(CASE WHEN at_ms < $1 THEN 1 ELSE 0 END), 0)
						FROM ledger_hit WHERE key <> 'a_key'`, c2.now().Add(-30*time.Minute).UnixMilli()).Scan(&left, &old)
				})
				if err != nil || left != want || old != 0 {
					t.Errorf("%d hits are left, %d of them old, %v; want %d", left, old, err, want)
				}
			})
		})
	}
}
