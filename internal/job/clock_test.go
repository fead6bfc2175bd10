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

// TestClockJump moves the clock far ahead for a moment. No record expires, and the times of jobs
// that were delayed or ended in that moment are lowered.
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
		ended := func(id string, at time.Time) {
			t.Helper()
			storetest.Exec(t, db,
				fmt.Sprintf(`INSERT INTO job (id, request, account, key, kind, model, endpoint, revision, plan, prompt, params, materials, `+
					`callback, once_key, fingerprint,
				held_nano, cost_nano, status, code, line, trace, body, created_ms, started_ms, ended_ms)
				VALUES ('%s', '', 'a', '', 'image', 'm', '', 1, '', '', '', '', '', '%[1]s', '', 0, 0, 'failed', '', '', '', '{}', 1, 1, %d)`, id,
					at.UnixMilli()))
		}
		pass := func(d time.Duration) {
			t.Helper()
			now, elapsed = now.Add(d), elapsed+d
			if err := j.Housekeep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		known := func(id string) bool {
			t.Helper()
			_, err := j.Body(t.Context(), "a", "image", id)
			return err == nil
		}
		ended("early", now)
		pass(time.Minute)
		now = now.Add(year)
		pass(10 * time.Second)
		ended("meanwhile", now)
		storetest.Exec(t, db,
			fmt.Sprintf(`INSERT INTO job_run (id, model, account, state, turn, queued_ms, wake_ms, started_ms, epoch, fence, line, `+
				`revision, number, ticket,
			submitted_ms, results, files, trace) VALUES ('waits', 'm', 'a', 0, 1, %d, %d, 0, '', 0, '', 0, 0, '', 0, '', '', '')`, now.UnixMilli(),
				now.UnixMilli()))
		if !known("early") {
			t.Error("while the clock was ahead, its record had run out")
		}
		now = now.Add(-year)
		pass(10 * time.Second)
		if !known("early") || !known("meanwhile") {
			t.Error("a record was forgotten")
		}
		var late int64
		if err := db.View(t.Context(), func(tx *store.Tx) error {
			return tx.QueryRow(`SELECT COUNT(*) FROM job_run WHERE wake_ms > $1 OR queued_ms > $1`, now.UnixMilli()).Scan(&late)
		}); err != nil || late != 0 {
			t.Errorf("%d jobs wait for the time that the clock was on, %v", late, err)
		}
		storetest.Exec(t, db, `DELETE FROM job_run`)
		for range 73 {
			pass(time.Hour)
		}
		if known("early") || known("meanwhile") {
			t.Error("a record outlived its retention")
		}
	})
}
