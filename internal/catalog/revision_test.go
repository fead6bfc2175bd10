package catalog

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// apply applies a document and returns the result.
func apply(t *testing.T, db *store.DB, doc *Document) ApplyResult {
	t.Helper()
	var result ApplyResult
	storetest.Update(t, db, func(tx *store.Tx) (err error) {
		result, err = ApplyTx(tx, doc)
		return err
	})
	return result
}

// TestApplyCreatesRevisions checks the revisions and changes of previews and applies, and the
// history.
func TestApplyCreatesRevisions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		firstDoc := mustParse(t, string(example(t)))
		secondDoc := mustParse(t, strings.Replace(string(example(t)), "input: 0.25\n", "input: 0.30\n", 1))
		storetest.View(t, db, func(tx *store.Tx) error {
			if _, _, err := CurrentTx(tx); !errors.Is(err, ErrNoRevision) {
				t.Errorf("CurrentTx of a new database: error %v, want %v", err, ErrNoRevision)
			}
			result, err := PreviewTx(tx, firstDoc)
			if result.Revision != 0 || len(result.Changes) != 4 {
				t.Errorf("preview of the first document = %+v, want revision 0 and 4 changes", result)
			}
			return err
		})
		if result := apply(t, db, firstDoc); result.Revision != 1 || !slices.Contains(result.Changes, "model lark-1: added") {
			t.Errorf("first apply = %+v, want revision 1 with lark-1 added", result)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			result, err := PreviewTx(tx, secondDoc)
			if result.Revision != 1 || !slices.Equal(result.Changes, []string{"model lark-1: price.input 0.25 -> 0.3"}) {
				t.Errorf("preview of the second document = %+v, want revision 1 and the change of the price", result)
			}
			return err
		})
		if result := apply(t, db, firstDoc); result.Revision != 1 || result.Changes == nil || len(result.Changes) != 0 {
			t.Errorf("apply of the current document = %+v, want revision 1 and no changes", result)
		}
		if result := apply(t, db, secondDoc); result.Revision != 2 || len(result.Changes) != 1 {
			t.Errorf("apply of the second document = %+v, want revision 2 and 1 change", result)
		}
		if result := apply(t, db, firstDoc); result.Revision != 3 {
			t.Errorf("apply of the first document again = %+v, want revision 3", result)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			doc, revision, err := CurrentTx(tx)
			if err != nil || revision != 3 || !Equal(doc, firstDoc) {
				t.Errorf("CurrentTx: revision %d, error %v, want the first document as revision 3", revision, err)
			}
			if doc, err = RevisionTx(tx, 2); err != nil || !Equal(doc, secondDoc) {
				t.Errorf("RevisionTx(2): error %v, want the second document", err)
			}
			if strings.Contains(string(doc.YAML()), "sk-") || !strings.Contains(string(doc.YAML()), "${EXAMPLE_API_KEY}") {
				t.Errorf("the credential is not printed as a reference:\n%s", doc.YAML())
			}
			if _, err := RevisionTx(tx, 4); !errors.Is(err, ErrNoRevision) {
				t.Errorf("RevisionTx(4): error %v, want %v", err, ErrNoRevision)
			}
			newest, more, err := HistoryTx(tx, 0, 2)
			if err != nil || !more || len(newest) != 2 || newest[0].Number != 3 || newest[1].Number != 2 || newest[1].AppliedMS == 0 ||
				len(newest[1].Changes) != 1 {
				t.Errorf("history = %+v, more %v, error %v, want revisions 3 and 2, and more", newest, more, err)
			}
			oldest, more, err := HistoryTx(tx, 2, 2)
			if err != nil || more || len(oldest) != 1 || oldest[0].Number != 1 {
				t.Errorf("history before 2 = %+v, more %v, error %v, want only revision 1", oldest, more, err)
			}
			return nil
		})
	})
}

// TestConcurrentAppliesCreateOneRevisionEach checks that concurrent applies get different revisions
// without gaps.
func TestConcurrentAppliesCreateOneRevisionEach(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const callers = 8
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			got []int64
		)
		for i := range callers {
			doc := mustParse(t, strings.Replace("models: ["+chatModel+"]", "100,", strings.Repeat("1", i+1)+",", 1))
			wg.Go(func() {
				result, err := store.Write(t.Context(), db, func(tx *store.Tx) (ApplyResult, error) { return ApplyTx(tx, doc) })
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, result.Revision)
			})
		}
		wg.Wait()
		slices.Sort(got)
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(slices.Compact(got), want) {
			t.Errorf("got revisions %v, want %v", got, want)
		}
	})
}

// TestFirstCatalogIsAppliedOnce checks that ApplyFirstTx only applies a document to a database
// without a catalog.
func TestFirstCatalogIsAppliedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, want := range []bool{true, false} {
			storetest.Update(t, db, func(tx *store.Tx) error {
				result, applied, err := ApplyFirstTx(tx, mustParse(t, string(Sandbox())))
				if applied != want || result.Revision != 1 {
					t.Errorf("call %d of ApplyFirstTx = %+v, %v, want revision 1, %v", i, result, applied, want)
				}
				return err
			})
		}
	})
}

// testLog is a log that tests can read and wait for.
type testLog struct{ lines chan string }

func newTestLog() testLog { return testLog{make(chan string, 1000)} }

func (l testLog) Write(p []byte) (int, error) {
	l.lines <- string(p)
	return len(p), nil
}

func (l testLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// drain returns the lines logged since the last call.
func (l testLog) drain() string {
	var out strings.Builder
	for {
		select {
		case line := <-l.lines:
			out.WriteString(line)
		default:
			return out.String()
		}
	}
}

// TestRefreshLoadsNewRevisions checks that a node serves each new revision that it can load, and
// otherwise keeps its snapshot and logs the error once.
func TestRefreshLoadsNewRevisions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		log := newTestLog()
		w := NewWatcher(WatcherOptions{DB: db, Providers: testProviders(), Lookup: environment(nil), Log: log.logger()})
		refresh := func() *Snapshot {
			t.Helper()
			if err := w.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.Current()
		}
		empty := refresh()
		if empty.Revision != 0 || len(empty.Models()) != 0 {
			t.Errorf("snapshot before the first apply %+v, want an empty one", empty)
		}
		apply(t, db, mustParse(t, string(example(t))))
		one := refresh()
		if one.Revision != 1 || len(one.Models()) != 3 {
			t.Errorf("snapshot after the first apply %+v, want revision 1 with 3 models", one)
		}
		if line := log.drain(); !strings.Contains(line, "revision=1") || !strings.Contains(line, "the variable EXAMPLE_API_KEY is not set") {
			t.Errorf("log %s, want the revision and the missing variable", line)
		}
		if again := refresh(); again != one || log.drain() != "" {
			t.Error("the same revision was loaded twice")
		}

		// A newer version stores a revision that this version cannot read. The node keeps its
		// snapshot, logs the error once, and continues with the next revision.
		storetest.Update(t, db, func(tx *store.Tx) error {
			if _, err := tx.Exec(insertRevision, 2, `{"models": 5}`, `[]`, 0); err != nil {
				return err
			}
			_, err := tx.Exec(updateHead, 2)
			return err
		})
		for range 2 {
			if refresh() != one {
				t.Error("a revision that cannot be loaded replaced the snapshot")
			}
		}
		if line := log.drain(); strings.Count(line, "cannot be loaded") != 1 {
			t.Errorf("log %s, want one error", line)
		}
		if result := apply(t, db, mustParse(t, catalogYAML)); result.Revision != 3 || len(result.Changes) != 1 {
			t.Errorf("apply over an unreadable revision = %+v, want revision 3 and 1 change", result)
		}
		if three := refresh(); three.Revision != 3 || len(three.Models()) != 2 {
			t.Errorf("snapshot after the third apply %+v, want revision 3 with 2 models", three)
		}
		if one.Revision != 1 || len(one.Models()) != 3 {
			t.Errorf("the first snapshot changed to %+v", one)
		}
	})
}

// TestRunLoadsNewRevisions checks that Run loads a new revision and ends with its context.
func TestRunLoadsNewRevisions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		log := newTestLog()
		w := NewWatcher(WatcherOptions{DB: db, Providers: testProviders(), Lookup: environment(nil), Log: log.logger(),
			Interval: time.Millisecond})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		apply(t, db, mustParse(t, string(Sandbox())))
		select {
		case line := <-log.lines:
			if !strings.Contains(line, "revision=1") || w.Current().Revision != 1 {
				t.Errorf("log %s and current revision %d, want revision 1", line, w.Current().Revision)
			}
		case <-time.After(30 * time.Second):
			t.Error("the revision was not loaded within 30s")
		}
		stop()
		<-done
	})
}

// TestRefreshKeepsSnapshotIfDatabaseFails checks that Refresh returns the error and keeps the
// snapshot.
func TestRefreshKeepsSnapshotIfDatabaseFails(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.SQLite(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(WatcherOptions{DB: db, Lookup: environment(nil), Log: newTestLog().logger()})
	before := w.Current()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Refresh(t.Context()); err == nil || w.Current() != before {
		t.Errorf("Refresh on a closed database: error %v, want an error and the former snapshot", err)
	}
}
