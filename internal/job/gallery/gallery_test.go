package gallery

import (
	"strings"
	"testing"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestIndexes checks that each part of a query reads one index in order, with jobs of a hundred accounts.
func TestIndexes(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const numbers = ` WITH RECURSIVE n (i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < 4000) `
		const name, account = `'job_' || CAST(i AS TEXT), `, `'acct_' || CAST(i % 100 AS TEXT), `
		err := db.Update(t.Context(), func(tx *store.Tx) error {
			for _, text := range []string{
				`INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, callback, once_key,
					fingerprint, held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)` + numbers +
					`SELECT ` + name + `'', ` + account + `'', CASE WHEN i % 3 = 0 THEN 'video' ELSE 'image' END, 'm', '', 1, '', '', '', '', '', '', '',
					0, 0, CASE WHEN i % 5 = 0 THEN 'failed' ELSE 'succeeded' END, '', '', '', '', i, i, CASE WHEN i > 2000 THEN 0 ELSE i END FROM n`,
				`INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, revision, number,
					ticket, submitted_ms, results, files, trace)` + numbers +
					`SELECT ` + name + `'m', ` + account + `0, i, i, 0, i % 2, '', 0, '', 0, 0, '', 0, '', '', '' FROM n WHERE i > 2000`,
				`ANALYZE`,
			} {
				if _, err := tx.Exec(text); err != nil {
					return err
				}
			}
			if err := tx.ByIndex(); err != nil {
				return err
			}
			parts := 0
			eachPart(func(name, text string, args []any) {
				storetest.WalksIndex(t, tx, name, text, args...)
				parts++
			})
			if parts != 14 {
				t.Errorf("eachPart found %d parts, want 14", parts)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// eachPart calls fn with the statement of each filter that has a single part.
func eachPart(fn func(name, text string, args []any)) {
	for _, kind := range []string{"", "image"} {
		for _, status := range []string{"", "queued", "processing", "succeeded", "failed"} {
			for _, after := range []string{"", "job_1000"} {
				text, args := UserFilter{Account: "acct_7", Kind: kind, Status: status, After: after, Limit: 50}.statement()
				if part, single := strings.CutSuffix(text, ") AS part0"); single {
					fn(strings.Join([]string{kind, status, after}, " "), strings.TrimPrefix(part, "SELECT id FROM ("), args)
				}
			}
		}
	}
}
