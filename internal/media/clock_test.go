package media

import (
	"testing"
	"time"

	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// TestClockJumpDeletesNoFile checks that files are kept for their time even if the sweep runs while the
// clock is far ahead for a moment.
func TestClockJumpDeletesNoFile(t *testing.T) {
	t.Parallel()
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := new(storetest.Clock)
		var elapsed time.Duration
		db := storetest.Open(t, url, store.Options{Now: c.Now, Elapsed: func() time.Duration { return elapsed }})
		b := newTestStore(t, db, c, "file:"+t.TempDir())
		advance := func(d time.Duration) {
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
		before := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		advance(time.Minute)
		c.Advance(400 * 24 * time.Hour)
		advance(10 * time.Second)
		during := b.put("job_2", formattest.Picture(t, "image/png", 4, 4, 1))
		advance(10 * time.Second)
		c.Advance(-400 * 24 * time.Hour)
		advance(10 * time.Second)
		if !exists(before) || !exists(during) {
			t.Error("a file was deleted before the end of its retention")
		}
		for range 26 {
			advance(time.Hour)
		}
		if exists(before) || exists(during) {
			t.Error("a file was not deleted after its retention")
		}
	})
}
