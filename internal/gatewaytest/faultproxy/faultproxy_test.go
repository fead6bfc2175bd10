package faultproxy_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
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
	proxy   *faultproxy.Proxy
	proxied *store.DB
	direct  *store.DB
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
		_, err := tx.Exec(`INSERT INTO node (epoch, beat, dead, started_ms) VALUES ($1, 0, 0, 0)`, name)
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
	b.Exec(nil, `INSERT INTO node (epoch, beat, dead, started_ms) VALUES ($1, 0, 0, 0)`, name)
	b.Commit()
	err = s.Run(ctx, b)
	return errors.Join(err, s.Close(err == nil))
}

// exists reports whether the row with a name exists.
func (s scene) exists(t *testing.T, name string) bool {
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

// patience is the maximum time to notice a broken connection.
const patience = 10 * time.Second

func TestFaultsOfCommits(t *testing.T) {
	t.Parallel()
	writes := map[string]func(context.Context, *store.DB, string) error{"transaction": insert, "batch": insertBatch}
	effects := map[string]faultproxy.Effect{"commit dropped": faultproxy.DropCommit, "answer dropped": faultproxy.DropAnswer}
	cuts := map[string]faultproxy.Cut{"reset": faultproxy.Reset, "closed": faultproxy.Close, "silent": faultproxy.Silence}
	for kind, write := range writes {
		for effectName, effect := range effects {
			for cutName, cut := range cuts {
				t.Run(kind+", "+effectName+", "+cutName, func(t *testing.T) {
					t.Parallel()
					s := newScene(t)
					for i, name := range []string{"warm", "warmer"} { // the second write uses prepared statements
						if err := write(t.Context(), s.proxied, name); err != nil {
							t.Fatalf("write %d: %v", i, err)
						}
					}
					hit := s.proxy.Arm(faultproxy.Fault{Match: faultproxy.Having("INSERT INTO node"), Nth: 2, Effect: effect, Cut: cut})
					if err := write(t.Context(), s.proxied, "before"); err != nil || hit.Happened() {
						t.Fatalf("the first write, before the fault: %v", err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					answered := make(chan error, 1)
					go func() { answered <- write(ctx, s.proxied, "hit") }()
					<-hit.Done()
					committed := effect == faultproxy.DropAnswer
					if hit.Committed() != committed || s.exists(t, "hit") != committed {
						t.Errorf("committed %t; want %t", hit.Committed(), committed)
					}
					if cut == faultproxy.Silence {
						select {
						case err := <-answered:
							t.Errorf("the silent connection returned %v", err)
						default:
						}
						cancel()
					}
					if err := <-answered; err == nil {
						t.Error("the write returned no error")
					}
					if err := write(t.Context(), s.proxied, "after"); err != nil {
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
	hit := s.proxy.Arm(faultproxy.Fault{Effect: faultproxy.HoldAnswer, Release: release})
	answered := make(chan error, 1)
	go func() { answered <- insert(t.Context(), s.proxied, "a") }()
	if !hit.Committed() || !s.exists(t, "a") {
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
	wantCancels := func(want faultproxy.Cancels) {
		t.Helper()
		deadline := time.Now().Add(patience)
		for proxy.Cancels() != want {
			if time.Now().After(deadline) {
				t.Fatalf("%+v; want %+v", proxy.Cancels(), want)
			}
			<-time.After(10 * time.Millisecond)
		}
	}
	// cancelDuring runs a statement and cancels its context after wait returns.
	cancelDuring := func(text string, wait func()) {
		conn, err := pgx.Connect(t.Context(), proxy.URL())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error, 1)
		go func() {
			_, err := conn.Exec(ctx, text)
			answered <- err
		}()
		wait()
		cancel()
		if err := <-answered; err == nil {
			t.Errorf("%s returned no error", text)
		}
	}
	cancelDuring(`SELECT pg_sleep(60)`, func() { <-time.After(50 * time.Millisecond) })
	wantCancels(faultproxy.Cancels{All: 1})

	release := make(chan struct{})
	defer close(release)
	hit := proxy.Arm(faultproxy.Fault{Effect: faultproxy.HoldAnswer, Release: release})
	cancelDuring(`COMMIT`, func() { <-hit.Done() })
	wantCancels(faultproxy.Cancels{All: 2, Commits: 1})
}

func TestStates(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	short := func(name string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		return insert(ctx, s.proxied, name)
	}
	s.proxy.Freeze()
	if err := short("frozen"); !errors.Is(err, context.DeadlineExceeded) || s.exists(t, "frozen") {
		t.Errorf("frozen: %v; want a timeout", err)
	}
	answered := make(chan error, 1)
	go func() { answered <- insert(t.Context(), s.proxied, "late") }()
	s.proxy.Open()
	if err := <-answered; err != nil || !s.exists(t, "late") {
		t.Errorf("opened: %v", err)
	}
	s.proxy.Down()
	if err := short("down"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("down: %v; want a refused connection", err)
	}
	s.proxy.Reopen()
	if err := insert(t.Context(), s.proxied, "again"); err != nil {
		t.Error(err)
	}
}

func TestDrawDependsOnTheSeed(t *testing.T) {
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
		t.Error("want the same faults for the same seed, and other faults for another seed")
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

// TestSteps resets the connection at each step of a transaction. Only the step after the COMMIT leaves a row.
func TestSteps(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	for resetAt, more := 1, true; more; resetAt++ {
		name := fmt.Sprintf("step %d", resetAt)
		var steps []faultproxy.Step
		s.proxy.Watch(func(step faultproxy.Step) bool {
			if !step.Touches("node") || step.Touches("nodes") {
				return true
			}
			steps = append(steps, step)
			return len(steps) != resetAt
		})
		err := insert(t.Context(), s.proxied, name)
		s.proxy.Watch(nil)
		last := steps[len(steps)-1]
		if more = len(steps) >= resetAt; more != (err != nil) {
			t.Errorf("%s of %d: got error %v", name, len(steps), err)
		}
		if got := s.exists(t, name); got != (last.Commit && last.Answered) {
			t.Errorf("%s of %d: the row exists: %t", name, len(steps), got)
		}
		if !more && len(steps) != 3 {
			t.Errorf("got %d steps, want the statement, the COMMIT and the answer", len(steps))
		}
	}
}
