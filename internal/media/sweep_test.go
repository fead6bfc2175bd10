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

// countingBackend is a backend that counts deletions, and fails them while failing is true.
type countingBackend struct {
	backend
	mu      sync.Mutex
	removed map[string]int
	failing bool
}

func (b *countingBackend) remove(ctx context.Context, name string) error {
	b.mu.Lock()
	b.removed[name]++
	failing := b.failing
	b.mu.Unlock()
	if failing {
		return errBoom
	}
	return b.backend.remove(ctx, name)
}

func (b *countingBackend) repair() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failing = false
}

// fill inserts n rows without files.
func (s *testStore) fill(n int, state string) {
	s.t.Helper()
	s.update(func(tx *store.Tx) error {
		for range n {
			if _, err := tx.Exec(insertText, newName(), "job_1", state, "image/png", 5, s.clock.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestNodesShareSweep checks that two nodes delete more files than fit into a chunk, each file once.
func TestNodesShareSweep(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newTestStore(t, db, c, "file:"+t.TempDir())
		otherNode := newTestStore(t, db, c, "file:"+t.TempDir())
		w := &countingBackend{backend: b.backend, removed: map[string]int{}}
		b.Store.backend, otherNode.Store.backend = w, w
		const n = 2*expireChunk + 10
		b.fill(n, statePublic)
		b.fill(3, stateAdopted)
		b.sweep()
		if got := b.rows(); got != n+3 {
			t.Fatalf("%d rows before the end of the retention, want %d", got, n+3)
		}
		c.Advance(retention)
		var nodes sync.WaitGroup
		for _, node := range []*testStore{b, otherNode} {
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
				t.Errorf("%s was deleted %d times, want 1", name, times)
			}
		}
		if len(w.removed) != n {
			t.Errorf("%d files were deleted, want %d", len(w.removed), n)
		}
	})
}

// TestFailedDeletionIsRetried checks that the deletion of a file is retried after retryDelay.
func TestFailedDeletionIsRetried(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newTestStore(t, db, c, "file:"+t.TempDir())
		w := &countingBackend{backend: b.backend, removed: map[string]int{}, failing: true}
		b.Store.backend = w
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.drop("job_1")
		if err := b.step(t.Context()); !errors.Is(err, errBoom) {
			t.Fatalf("step returned %v, want %v", err, errBoom)
		}
		b.wantRow(f.Name, stateGone)
		w.repair()
		b.sweep()
		b.wantRow(f.Name, stateGone) // not deleted again at once
		c.Advance(retryDelay)
		b.sweep()
		b.wantRow(f.Name, "")
		b.wantBytes(f.Name, false)
	})
}

// TestExpiredFileIsNotPublished checks that Publish fails after the sweep has given up the file.
func TestExpiredFileIsNotPublished(t *testing.T) {
	forEachBackend(t, func(b *testStore) {
		f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
		b.clock.Advance(unpublishedTime)
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

// TestRunDeletesUntilCanceled checks that Discard wakes Run, until the context ends.
func TestRunDeletesUntilCanceled(t *testing.T) {
	t.Parallel()
	b := newSQLiteStore(t, "file:"+t.TempDir())
	w := &countingBackend{backend: b.backend, removed: map[string]int{}}
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

// TestTidyDeletesOnlyOldFiles checks that tidy deletes unfinished files from before the given time and
// no other files.
func TestTidyDeletesOnlyOldFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newSQLiteStore(t, "file:"+dir)
	f := b.put("job_1", formattest.Picture(t, "image/png", 4, 4, 1))
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		path := filepath.Join(dir, unfinishedDir, name)
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.backend.tidy(t.Context(), now.Add(-unpublishedTime)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, unfinishedDir))
	if err != nil || len(entries) != 1 || entries[0].Name() != "young" {
		t.Errorf("unfinished files %v, error %v; want young only", entries, err)
	}
	b.wantBytes(f.Name, true)
}

// TestStatementsUseIndexes checks that SQLite scans the table for no statement.
func TestStatementsUseIndexes(t *testing.T) {
	t.Parallel()
	b := newSQLiteStore(t, "file:"+t.TempDir())
	for _, text := range []string{
		findText, resetText, storeText, renewText, storedText, publishText, adoptText, discardText, loseText, dropText,
		dueText, expireText, claimText, deferText + b.db.In("name", 2), deleteText + b.db.In("name", 1),
	} {
		err := b.db.View(t.Context(), func(tx *store.Tx) error {
			args := make([]any, strings.Count(text, "$"))
			for i := range args {
				args[i] = "[]"
			}
			for _, detail := range storetest.Plan(t, tx, text, args...) {
				if strings.HasPrefix(detail, "SCAN media_file") || strings.Contains(detail, "TEMP B-TREE FOR ORDER") && text != storedText {
					t.Errorf("statement %s\nreads too many rows: %s", text, detail)
				}
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestFilesAreDeletedConcurrently checks that maxDeletions deletions run at the same time. Each waits
// for the others, so deletions one after the other would fail.
func TestFilesAreDeletedConcurrently(t *testing.T) {
	t.Parallel()
	storetest.EachClock(t, func(t *testing.T, db *store.DB, c *storetest.Clock) {
		b := newTestStore(t, db, c, "file:"+t.TempDir())
		m := &blockingBackend{backend: b.backend, full: make(chan struct{})}
		b.Store.backend = m
		b.fill(deleteChunk, stateGone)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if n, err := b.delete(ctx); err != nil || n != deleteChunk {
			t.Errorf("delete = %d, %v, want %d", n, err, deleteChunk)
		}
		if m.maxConcurrent > maxDeletions {
			t.Errorf("%d concurrent deletions, want at most %d", m.maxConcurrent, maxDeletions)
		}
	})
}

// blockingBackend is a backend. Its deletions wait until maxDeletions of them run.
type blockingBackend struct {
	backend
	mu                        sync.Mutex
	concurrent, maxConcurrent int
	full                      chan struct{} // closed when the maximum number of deletions run
}

func (b *blockingBackend) remove(ctx context.Context, name string) error {
	b.mu.Lock()
	b.concurrent++
	if b.maxConcurrent = max(b.maxConcurrent, b.concurrent); b.concurrent == maxDeletions && b.maxConcurrent == maxDeletions {
		select {
		case <-b.full:
		default:
			close(b.full)
		}
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.concurrent--
	}()
	select {
	case <-b.full:
		return nil
	case <-time.After(5 * time.Second):
		return errBoom
	}
}
