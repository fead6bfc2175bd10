package media

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/media/format"
	"tollgate/internal/media/formattest"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// watched is a backend that counts deletions and fails them on demand.
type watched struct {
	backend
	mu      sync.Mutex
	removed map[string]int
	broken  bool
}

func (w *watched) remove(ctx context.Context, name string) error {
	w.mu.Lock()
	w.removed[name]++
	broken := w.broken
	w.mu.Unlock()
	if broken {
		return errBoom
	}
	return w.backend.remove(ctx, name)
}

func (w *watched) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = false
}

// fill inserts n rows of files that do not exist.
func (b *bench) fill(n int, state string) {
	b.t.Helper()
	b.update(func(tx *store.Tx) error {
		for range n {
			if _, err := tx.Exec(insertText, newName(), "job_1", state, "image/png", 5, b.clock.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestSweepGoesInChunksAndNodesShareIt(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newBench(t, db, c, "file:"+t.TempDir())
		other := newBench(t, db, c, "file:"+t.TempDir())
		w := &watched{backend: b.backend, removed: map[string]int{}}
		b.Store.backend, other.Store.backend = w, w
		const n = 2*expireChunk + 10
		b.fill(n, statePublic)
		b.fill(3, stateAdopted)
		b.sweep()
		if got := b.rows(); got != n+3 {
			t.Fatalf("%d rows before the end of the retention, want %d", got, n+3)
		}
		c.Advance(retention)
		var nodes sync.WaitGroup
		for _, node := range []*bench{b, other} {
			nodes.Go(func() {
				if err := node.step(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		nodes.Wait()
		if got := b.rows(); got != 3 {
			t.Errorf("%d rows left, want 3", got)
		}
		for name, times := range w.removed {
			if times != 1 {
				t.Errorf("%s was deleted %d times", name, times)
			}
		}
		if len(w.removed) != n {
			t.Errorf("%d files were deleted, want %d", len(w.removed), n)
		}
	})
}

func TestAFileThatCannotBeDeletedIsTriedAgain(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newBench(t, db, c, "file:"+t.TempDir())
		w := &watched{backend: b.backend, removed: map[string]int{}, broken: true}
		b.Store.backend = w
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.drop("job_1")
		if err := b.step(t.Context()); !errors.Is(err, errBoom) {
			t.Fatalf("step: %v", err)
		}
		b.wantRow(f.Name, stateGone)
		w.mend()
		b.sweep()
		b.wantRow(f.Name, stateGone) // not deleted again at once
		c.Advance(again)
		b.sweep()
		b.wantRow(f.Name, "")
		b.wantBytes(f.Name, false)
	})
}

func TestPublishingLosesAgainstTheSweep(t *testing.T) {
	each(t, func(b *bench) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.clock.Advance(unpublishedFor)
		if _, err := b.expire(t.Context(), stateStored); err != nil {
			b.t.Fatal(err)
		}
		if b.publish("job_1", f) {
			b.t.Error("a file being deleted was published")
		}
		b.wantGone(f)
		b.sweep()
		b.wantRow(f.Name, "")
	})
}

func TestRunDeletesAndEnds(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, "file:"+t.TempDir())
	w := &watched{backend: b.backend, removed: map[string]int{}}
	b.Store.backend = w
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	f, err := b.Keep(ctx, "job_1", formattest.Picture(t, "image/png", 4, 4, 1), format.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	b.Discard(ctx, "job_1") // wakes Run
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for limit := time.After(5 * time.Second); b.rows() > 0; {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("Run did not delete the reference")
		}
	}
	b.wantBytes(f.Name, false)
	cancel()
	<-done
}

func TestTidyDeletesOldUnfinishedFilesAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := onSQLite(t, "file:"+dir)
	f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
	concurrent := time.Now()
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		path := filepath.Join(dir, unfinished, name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, concurrent.Add(-age), concurrent.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.backend.tidy(t.Context(), concurrent.Add(-unpublishedFor)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, unfinished))
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("entries left: %v (%v)", entries, err)
	}
	b.wantBytes(f.Name, true)
}

// TestNoStatementReadsTheWholeTable checks SQLite's query plans.
func TestNoStatementReadsTheWholeTable(t *testing.T) {
	t.Parallel()
	b := onSQLite(t, "file:"+t.TempDir())
	for _, text := range []string{
		findText, emptyText, storeText, renewText, storedText, publishText, adoptText, discardText, loseText, dropText,
		dueText, expireText, claimText, deferText + b.db.In("name", 2), deleteText + b.db.In("name", 1),
	} {
		err := b.db.View(t.Context(), func(tx *store.Tx) error {
			args := make([]any, strings.Count(text, "$"))
			for i := range args {
				args[i] = "[]"
			}
			for _, detail := range storetest.Plan(t, tx, text, args...) {
				if strings.HasPrefix(detail, "SCAN media_file") || strings.Contains(detail, "TEMP B-TREE FOR ORDER") && text != storedText {
					t.Errorf("%s\n%s", text, detail)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFilesAreDeletedInParallel blocks each deletion until the maximum number of deletions run at
// once, so the step would not end if they ran one after the other.
func TestFilesAreDeletedInParallel(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newBench(t, db, c, "file:"+t.TempDir())
		m := &meeting{backend: b.backend, all: make(chan struct{})}
		b.Store.backend = m
		b.fill(deleteChunk, stateGone)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if n, err := b.delete(ctx); err != nil || n != deleteChunk {
			t.Errorf("%d files: %v", n, err)
		}
		if m.maxConcurrent > deleting {
			t.Errorf("%d concurrent deletions", m.maxConcurrent)
		}
	})
}

// meeting is a backend whose deletions wait for each other.
type meeting struct {
	backend
	mu                        sync.Mutex
	concurrent, maxConcurrent int
	all                       chan struct{} // closed when the maximum number of deletions run
}

func (m *meeting) remove(ctx context.Context, name string) error {
	m.mu.Lock()
	m.concurrent++
	if m.maxConcurrent = max(m.maxConcurrent, m.concurrent); m.concurrent == deleting && m.maxConcurrent == deleting {
		select {
		case <-m.all:
		default:
			close(m.all)
		}
	}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.concurrent--
	}()
	select {
	case <-m.all:
		return nil
	case <-time.After(5 * time.Second):
		return errBoom
	}
}
