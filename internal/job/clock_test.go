package job

import (
	"fmt"
	"testing"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/media"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestClockJump checks that no record expires while the clock is far ahead for a moment and the
// times of jobs that were queued or ended in that moment are lowered.
func TestClockJump(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		const year = 400 * 24 * time.Hour
		now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
		var elapsed time.Duration
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }, Elapsed: func() time.Duration { return elapsed }})
		files, err := media.Open(t.Context(), media.Options{DB: db, Location: "file:" + t.TempDir(), Base: "http://127.0.0.1/media",
			Retention: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		j := New(Options{DB: db, Ledger: ledger.New(ledger.Options{DB: db}), Media: files})
		insertEnded := func(id string, end time.Time) {
			t.Helper()
			storetest.Exec(t, db,
				fmt.Sprintf(`INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, `+
					`callback, once_key, fingerprint,
				held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)
				VALUES ('%s', '', 'a', '', 'image', 'm', '', 1, '', '', '', '', '', '%[1]s', '', 0, 0, 'failed', '', '', '', '{}', 1, 1, %d)`, id,
					end.UnixMilli()))
		}
		advance := func(d time.Duration) {
			t.Helper()
			now, elapsed = now.Add(d), elapsed+d
			if err := j.Housekeep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exists := func(id string) bool {
			t.Helper()
			_, err := j.Body(t.Context(), "a", "image", id)
			return err == nil
		}
		insertEnded("early", now)
		advance(time.Minute)
		now = now.Add(year)
		advance(10 * time.Second)
		insertEnded("meanwhile", now)
		storetest.Exec(t, db,
			fmt.Sprintf(`INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, `+
				`revision, number, ticket,
			submitted_ms, results, files, trace) VALUES ('waits', 'm', 'a', 0, 1, %d, %d, 0, '', 0, '', 0, 0, '', 0, '', '', '')`, now.UnixMilli(),
				now.UnixMilli()))
		if !exists("early") {
			t.Error("a record expired while the clock was ahead")
		}
		now = now.Add(-year)
		advance(10 * time.Second)
		if !exists("early") || !exists("meanwhile") {
			t.Error("a record expired after the clock was back")
		}
		var future int64
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM job_run WHERE wake_ms > $1 OR queued_ms > $1`, now.UnixMilli()).Scan(&future)
		}); err != nil || future != 0 {
			t.Errorf("%d runs have times in the future, want none; error %v", future, err)
		}
		storetest.Exec(t, db, `DELETE FROM job_run`)
		for range 73 {
			advance(time.Hour)
		}
		if exists("early") || exists("meanwhile") {
			t.Error("a record outlived its retention")
		}
	})
}
