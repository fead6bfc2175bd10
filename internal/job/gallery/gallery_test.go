package gallery

import (
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestShelvesWalkIndexes fills the tables with jobs of a hundred accounts: each walk
// that brings a page reads an index in its order, and nothing else.
func TestShelvesWalkIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 4000) `
		const name, owner = `'job_' || CAST(i AS TEXT), `, `'acct_' || CAST(i % 100 AS TEXT), `
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			for _, text := range []string{
				`INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, callback, once_key,
					fingerprint, free, held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)` + numbers +
					`SELECT ` + name + `'', ` + owner + `'', CASE WHEN i % 3 = 0 THEN 'video' ELSE 'image' END, 'm', '', 1, '', '', '', '', '', '', '',
					0, 0, 0, CASE WHEN i % 5 = 0 THEN 'failed' ELSE 'succeeded' END, '', '', '', '', i, i, CASE WHEN i > 2000 THEN 0 ELSE i END FROM n`,
				`INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, revision, number,
					ticket, submitted_ms, results, files, trace)` + numbers +
					`SELECT ` + name + `'m', ` + owner + `0, i, i, 0, i % 2, '', 0, '', 0, 0, '', 0, '', '', '' FROM n WHERE i > 2000`,
				`ANALYZE`,
			} {
				if _, err := tx.Exec(text); err != nil {
					return err
				}
			}
			if err := tx.ByIndex(); err != nil {
				return err
			}
			eachShelf(func(name, text string, args []any) { storetest.WalksIndex(t, tx, name, text, args...) })
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// eachShelf calls fn with each walk that shelves are found by: those of shelves that
// take one alone.
func eachShelf(fn func(name, walk string, args []any)) {
	for _, kind := range []string{"", "image"} {
		for _, status := range []string{"", "queued", "processing", "succeeded", "failed"} {
			for _, after := range []string{"", "job_1000"} {
				text, args := Shelf{Account: "acct_7", Kind: kind, Status: status, After: after, Limit: 50}.statement()
				if walk, one := strings.CutSuffix(text, ") AS walk0"); one {
					fn(strings.Join([]string{kind, status, after}, " "), strings.TrimPrefix(walk, "SELECT id FROM ("), args)
				}
			}
		}
	}
}
