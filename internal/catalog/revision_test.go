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

func apply(t *testing.T, db *store.DB, doc *Document) ApplyResult {
	t.Helper()
	var a ApplyResult
	storetest.Update(t, db, func(tx *store.Tx) (err error) {
		a, err = ApplyTx(tx, doc)
		return err
	})
	return a
}

func TestEveryApplyMakesARevision(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		one := mustParse(t, string(example(t)))
		two := mustParse(t, strings.Replace(string(example(t)), "input: 0.25\n", "input: 0.30\n", 1))
		storetest.View(t, db, func(tx *store.Tx) error {
			if _, _, err := CurrentTx(tx); !errors.Is(err, ErrNoRevision) {
				t.Errorf("a new database has a catalog: %v", err)
			}
			a, err := PreviewTx(tx, one)
			if a.Revision != 0 || len(a.Changes) != 4 {
				t.Errorf("preview of the first: %+v", a)
			}
			return err
		})
		if a := apply(t, db, one); a.Revision != 1 || !slices.Contains(a.Changes, "model lark-1: added") {
			t.Errorf("first apply: %+v", a)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			a, err := PreviewTx(tx, two)
			if a.Revision != 1 || !slices.Equal(a.Changes, []string{"model lark-1: price.input 0.25 -> 0.3"}) {
				t.Errorf("preview of the second: %+v", a)
			}
			return err
		})
		if a := apply(t, db, one); a.Revision != 1 || a.Changes == nil || len(a.Changes) != 0 {
			t.Errorf("the same again: %+v", a)
		}
		if a := apply(t, db, two); a.Revision != 2 || len(a.Changes) != 1 {
			t.Errorf("second apply: %+v", a)
		}
		if a := apply(t, db, one); a.Revision != 3 {
			t.Errorf("back to the first: %+v", a)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			doc, n, err := CurrentTx(tx)
			if err != nil || n != 3 || !Equal(doc, one) {
				t.Errorf("current: %d, %v", n, err)
			}
			if doc, err = RevisionTx(tx, 2); err != nil || !Equal(doc, two) {
				t.Errorf("revision 2: %v", err)
			}
			if strings.Contains(string(doc.YAML()), "sk-") || !strings.Contains(string(doc.YAML()), "${EXAMPLE_API_KEY}") {
				t.Error("the credential is not printed as a reference")
			}
			if _, err := RevisionTx(tx, 4); !errors.Is(err, ErrNoRevision) {
				t.Errorf("revision 4: %v", err)
			}
			newest, more, err := HistoryTx(tx, 0, 2)
			if err != nil || !more || len(newest) != 2 || newest[0].Number != 3 || newest[1].Number != 2 || newest[1].AppliedMS == 0 ||
				len(newest[1].Changes) != 1 {
				t.Errorf("history: %+v, more %v, %v", newest, more, err)
			}
			oldest, more, err := HistoryTx(tx, 2, 2)
			if err != nil || more || len(oldest) != 1 || oldest[0].Number != 1 {
				t.Errorf("the rest of the history: %+v, more %v, %v", oldest, more, err)
			}
			return nil
		})
	})
}

func TestAppliesAtOnceMakeARevisionEach(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const callers = 8
		var (
			wait sync.WaitGroup
			mu   sync.Mutex
			got  []int64
		)
		for i := range callers {
			doc := mustParse(t, strings.Replace("models: ["+chatModel+"]", "100,", strings.Repeat("1", i+1)+",", 1))
			wait.Go(func() {
				a, err := store.Write(t.Context(), db, func(tx *store.Tx) (ApplyResult, error) { return ApplyTx(tx, doc) })
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, a.Revision)
			})
		}
		wait.Wait()
		slices.Sort(got)
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 8}; !slices.Equal(slices.Compact(got), want) {
			t.Errorf("revisions %v", got)
		}
	})
}

func TestTheFirstCatalogIsAppliedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for i, want := range []bool{true, false} {
			storetest.Update(t, db, func(tx *store.Tx) error {
				a, first, err := ApplyFirstTx(tx, mustParse(t, string(Sandbox())))
				if first != want || a.Revision != 1 {
					t.Errorf("start %d: %+v, first %v", i, a, first)
				}
				return err
			})
		}
	})
}

// journal is a log for tests to read and wait on.
type journal struct{ lines chan string }

func newJournal() journal { return journal{make(chan string, 1000)} }

func (j journal) Write(p []byte) (int, error) {
	j.lines <- string(p)
	return len(p), nil
}

func (j journal) log() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// all returns the log so far.
func (j journal) all() string {
	var out strings.Builder
	for {
		select {
		case line := <-j.lines:
			out.WriteString(line)
		default:
			return out.String()
		}
	}
}

func TestNodesPickUpRevisions(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		j := newJournal()
		w := NewWatcher(WatcherOptions{DB: db, Providers: testProviders(), Lookup: environment(nil), Log: j.log()})
		look := func() *Snapshot {
			t.Helper()
			if err := w.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.Current()
		}
		empty := look()
		if empty.Revision != 0 || len(empty.Models()) != 0 {
			t.Errorf("before the first apply: %+v", empty)
		}
		apply(t, db, mustParse(t, string(example(t))))
		one := look()
		if one.Revision != 1 || len(one.Models()) != 3 {
			t.Errorf("after the first: %+v", one)
		}
		if line := j.all(); !strings.Contains(line, "revision=1") || !strings.Contains(line, "the variable EXAMPLE_API_KEY is not set") {
			t.Errorf("the log does not tell what is served and what is out: %s", line)
		}
		if again := look(); again != one || j.all() != "" {
			t.Error("the same revision was taken twice")
		}

		// A newer version stores a revision unreadable for this version: the node keeps its
		// snapshot, logs the error once, and continues with the next revision.
		storetest.Update(t, db, func(tx *store.Tx) error {
			if _, err := tx.Exec(insertRevision, 2, `{"models": 5}`, `[]`, 0); err != nil {
				return err
			}
			_, err := tx.Exec(updateHead, 2)
			return err
		})
		for range 2 {
			if look() != one {
				t.Error("a revision that cannot be loaded replaced the former")
			}
		}
		if line := j.all(); strings.Count(line, "cannot be loaded") != 1 {
			t.Errorf("logged: %s", line)
		}
		if a := apply(t, db, mustParse(t, served)); a.Revision != 3 || len(a.Changes) != 1 {
			t.Errorf("apply over an unreadable revision: %+v", a)
		}
		if three := look(); three.Revision != 3 || len(three.Models()) != 2 {
			t.Errorf("after the third: %+v", three)
		}
		if one.Revision != 1 || len(one.Models()) != 3 {
			t.Error("a snapshot in use changed")
		}
	})
}

func TestRunPicksUpUntilItIsStopped(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		j := newJournal()
		w := NewWatcher(WatcherOptions{DB: db, Providers: testProviders(), Lookup: environment(nil), Log: j.log(), Interval: time.Millisecond})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		apply(t, db, mustParse(t, string(Sandbox())))
		select {
		case line := <-j.lines:
			if !strings.Contains(line, "revision=1") || w.Current().Revision != 1 {
				t.Errorf("logged: %s", line)
			}
		case <-time.After(30 * time.Second):
			t.Error("the revision was not picked up")
		}
		stop()
		<-done
	})
}

func TestADatabaseThatIsAwayKeepsTheSnapshot(t *testing.T) {
	t.Parallel()
	db, err := store.Open(t.Context(), storetest.SQLite(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := NewWatcher(WatcherOptions{DB: db, Lookup: environment(nil), Log: newJournal().log()})
	before := w.Current()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Refresh(t.Context()); err == nil || w.Current() != before {
		t.Errorf("refresh on a closed database: %v", err)
	}
}
