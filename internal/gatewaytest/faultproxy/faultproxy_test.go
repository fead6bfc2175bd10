package faultproxy_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/internal/gatewaytest/faultproxy"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// scene is a database with two connections: through a proxy, and direct.
type scene struct {
	proxy  *faultproxy.Proxy
	behind *store.DB
	direct *store.DB
}

func newScene(t *testing.T) scene {
	t.Helper()
	url := storetest.PostgreSQL(t)
	direct := storetest.Open(t, url, store.Options{})
	proxy := faultproxy.New(t, url)
	return scene{proxy, storetest.Open(t, proxy.URL(), store.Options{}), direct}
}

// insert inserts a row with a name in a transaction.
func insert(ctx context.Context, db *store.DB, name string) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO node (epoch, batch, beat, dead, started_ms) VALUES ($1, 0, 0, 0, 0)`, name)
		return err
	})
}

// insertBatch is like insert, but in one pipeline, as the ledger writes.
func insertBatch(ctx context.Context, db *store.DB, name string) error {
	s, err := db.Session(ctx)
	if err != nil {
		return err
	}
	b := db.NewBatch()
	b.Begin("500ms", "2s")
	b.Exec(nil, `INSERT INTO node (epoch, batch, beat, dead, started_ms) VALUES ($1, 0, 0, 0, 0)`, name)
	b.Commit()
	err = s.Run(ctx, b)
	return errors.Join(err, s.Close(err == nil))
}

// there reports whether the row exists.
func (s scene) there(t *testing.T, name string) bool {
	t.Helper()
	var found string
	err := s.direct.View(t.Context(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT epoch FROM node WHERE epoch = $1`, name).Scan(&found)
	})
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return err == nil
}

// patience bounds the time to notice a broken connection.
const patience = 10 * time.Second

func TestStruckCommits(t *testing.T) {
	t.Parallel()
	ways := map[string]func(context.Context, *store.DB, string) error{"transaction": insert, "batch": insertBatch}
	strikes := map[string]faultproxy.Strike{"commit dropped": faultproxy.DropCommit, "answer dropped": faultproxy.DropAnswer}
	cuts := map[string]faultproxy.Cut{"reset": faultproxy.Reset, "closed": faultproxy.Close, "silent": faultproxy.Silence}
	for way, write := range ways {
		for strikeName, strike := range strikes {
			for cutName, cut := range cuts {
				t.Run(way+", "+strikeName+", "+cutName, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					for i, name := range []string{"warm", "warmer"} { // the second uses prepared statements
						if err := write(t.Context(), s.behind, name); err != nil {
							t.Fatalf("write %d: %v", i, err)
						}
					}
					hit := s.proxy.Arm(faultproxy.Fault{Match: faultproxy.Having("INSERT INTO node"), Nth: 2, Strike: strike, Cut: cut})
					if err := write(t.Context(), s.behind, "before"); err != nil || hit.Happened() {
						t.Fatalf("the first passes: %v", err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					answered := make(chan error, 1)
					go func() { answered <- write(ctx, s.behind, "struck") }()
					<-hit.Done()
					committed := strike == faultproxy.DropAnswer
					if hit.Committed() != committed || s.there(t, "struck") != committed {
						t.Errorf("committed %t; want %t", hit.Committed(), committed)
					}
					if cut == faultproxy.Silence {
						select {
						case err := <-answered:
							t.Errorf("answered %v on a silent connection", err)
						default:
						}
						cancel()
					}
					if err := <-answered; err == nil {
						t.Error("the write was answered as committed")
					}
					if err := write(t.Context(), s.behind, "after"); err != nil {
						t.Errorf("another connection: %v", err)
					}
				})
			}
		}
	}
}

func TestHeldAnswerComesLate(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	release := make(chan struct{})
	hit := s.proxy.Arm(faultproxy.Fault{Strike: faultproxy.HoldAnswer, Release: release})
	answered := make(chan error, 1)
	go func() { answered <- insert(t.Context(), s.behind, "a") }()
	if !hit.Committed() || !s.there(t, "a") {
		t.Error("not committed")
	}
	select {
	case err := <-answered:
		t.Errorf("answered early: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if c := s.proxy.Cancels(); c != (faultproxy.Cancels{}) {
		t.Errorf("%+v; want no request to cancel", c)
	}
}

func TestCancelsAreCounted(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, storetest.PostgreSQL(t))
	counts := func(want faultproxy.Cancels) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for proxy.Cancels() != want {
			if time.Now().After(deadline) {
				t.Fatalf("%+v; want %+v", proxy.Cancels(), want)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	// leaves runs a statement and cancels its context when begun returns.
	leaves := func(text string, begun func()) {
		conn, err := pgx.Connect(t.Context(), proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, text)
			answered <- err
		}()
		begun()
		leave()
		if err := <-answered; err == nil {
			t.Errorf("%s was answered", text)
		}
	}
	leaves(`SELECT pg_sleep(60)`, func() { <-time.After(50 * time.Millisecond) })
	counts(faultproxy.Cancels{All: 1})

	release := make(chan struct{})
	defer close(release)
	hit := proxy.Arm(faultproxy.Fault{Strike: faultproxy.HoldAnswer, Release: release})
	leaves(`COMMIT`, func() { <-hit.Done() })
	counts(faultproxy.Cancels{All: 2, Commits: 1})
}

func TestStates(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	short := func(name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return insert(ctx, s.behind, name)
	}
	s.proxy.Freeze()
	if err := short("frozen"); !errors.Is(err, context.DeadlineExceeded) || s.there(t, "frozen") {
		t.Errorf("frozen: %v; want that it hangs", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- insert(t.Context(), s.behind, "late") }()
	s.proxy.Open()
	if err := <-answered; err != nil || !s.there(t, "late") {
		t.Errorf("opened: %v", err)
	}
	s.proxy.Down()
	if err := short("down"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("down: %v; want a refused connection", err)
	}
	s.proxy.Reopen()
	if err := insert(t.Context(), s.behind, "again"); err != nil {
		t.Error(err)
	}
}

func TestDrawIsTheSeeds(t *testing.T) {
	t.Parallel()
	words := []string{"INSERT INTO a", "UPDATE b"}
	draw := func(seed uint64) (all []faultproxy.Fault) {
		r := rand.New(rand.NewPCG(seed, 1))
		for range 20 {
			f := faultproxy.Draw(r, words)
			f.Match = nil // functions cannot be compared
			all = append(all, f)
		}
		return all
	}
	if !reflect.DeepEqual(draw(1), draw(1)) || reflect.DeepEqual(draw(1), draw(2)) {
		t.Error("a seed is to draw the same faults every time, and another one others")
	}
}

func TestHas(t *testing.T) {
	t.Parallel()
	c := faultproxy.Commit{Statements: []string{"UPDATE  job\n SET x = 1", "insert into job (id) VALUES (1)"}}
	for words, want := range map[string]bool{"UPDATE job": true, "INSERT INTO job": true, "UPDATE job_run": false, "SET": false} {
		if c.Has(words) != want {
			t.Errorf("Has(%q) is %t", words, !want)
		}
	}
}
