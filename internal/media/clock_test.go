package media

import (
	"testing"
	"time"

	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestAJumpDeletesNoFile moves the clock far ahead for a moment, during which the sweep runs.
func TestAJumpDeletesNoFile(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := new(storetest.Clock)
		var elapsed time.Duration
		db := storetest.Open(t, url, store.Options{Now: c.Now, Elapsed: func() time.Duration { return elapsed }})
		b := newBench(t, db, c, "file:"+t.TempDir())
		pass := func(d time.Duration) {
			t.Helper()
			c.Advance(d)
			elapsed += d
			if err := b.step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		exists := func(file File) bool {
			t.Helper()
			var r *record
			b.update(func(tx *store.Tx) (err error) {
				r, err = recordTx(tx, file.Name)
				return err
			})
			return r != nil
		}
		early := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		pass(time.Minute)
		c.Advance(400 * 24 * time.Hour)
		pass(10 * time.Second)
		meanwhile := b.put("job_2", formattest.Picture(t, "image/png", 4, 4, 1))
		pass(10 * time.Second)
		c.Advance(-400 * 24 * time.Hour)
		pass(10 * time.Second)
		if !exists(early) || !exists(meanwhile) {
			t.Error("a file was deleted before the end of its retention")
		}
		for range 26 {
			pass(time.Hour)
		}
		if exists(early) || exists(meanwhile) {
			t.Error("a file was not deleted after its retention")
		}
	})
}
