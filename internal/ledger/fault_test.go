package ledger

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// script breaks calls between a committer and its connection.
type script struct {
	mu    sync.Mutex
	steps func(p commit.Phase, run func() error) error // if nil, every call runs
}

func (s *script) set(steps func(p commit.Phase, run func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = steps
}

// install installs the script for a committer with one worker, so that its phases are in order.
func (s *script) install(o *Options) {
	o.workers = 1
	o.exec = func(ctx context.Context, session *store.Session, b *store.Batch, p commit.Phase) error {
		s.mu.Lock()
		steps := s.steps
		s.mu.Unlock()
		run := func() error { return session.Run(ctx, b) }
		if steps == nil {
			return run()
		}
		return steps(p, run)
	}
}

var errLost = io.ErrUnexpectedEOF // the error of a broken connection

// breakFirst breaks the first n calls of one phase.
func breakFirst(n int64, p commit.Phase, broken func(run func() error) error) func(commit.Phase, func() error) error {
	var left atomic.Int64
	left.Store(n)
	return func(at commit.Phase, run func() error) error {
		if at == p && left.Add(-1) >= 0 {
			return broken(run)
		}
		return run()
	}
}

func TestLostCommitIsResolvedExactlyOnce(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]func(n int64) func(commit.Phase, func() error) error{
		"committed, answer lost": func(n int64) func(commit.Phase, func() error) error {
			return breakFirst(n, commit.PhaseWrite, func(run func() error) error { return errors.Join(run(), errLost) })
		},
		"never arrived": func(n int64) func(commit.Phase, func() error) error {
			return breakFirst(n, commit.PhaseWrite, func(func() error) error { return errLost })
		},
		"connection lost before the decision": func(n int64) func(commit.Phase, func() error) error {
			return breakFirst(n, commit.PhaseRead, func(func() error) error { return errLost })
		},
		"connection lost after the read": func(n int64) func(commit.Phase, func() error) error {
			return breakFirst(n, commit.PhaseRead, func(run func() error) error { return errors.Join(run(), errLost) })
		},
	} {
		for _, n := range []int64{1, 3} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *store.DB) {
					var s script
					f := start(t, db, s.install)
					f.open("a", money.USD, 0, KeyLimits{})
					s.set(steps(n))
					h := f.mustAdmit("a", money.USD)
					if st := f.state("a"); st.Held != money.USD {
						t.Fatalf("held %s after the admission, want 1", st.Held)
					}
					s.set(steps(n))
					if err := h.Settle(context.Background(), billed(money.USD/2)); err != nil {
						t.Fatal(err)
					}
					if st := f.state("a"); st.Held != 0 || st.Balance != money.USD/2 {
						t.Errorf("%+v; want one charge of 0.5", st)
					}
					if list := f.requests(requestlog.Selection{}); len(list) != 1 {
						t.Errorf("%d receipts; want 1", len(list))
					}
					f.checkAudit()
				})
			})
		}
	}
}

// overlap lets batches begin at the same time whenever there are operations.
func overlap(o *Options) { o.workers, o.interval = 4, 1 }

func TestRandomFaultsUnderLoad(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install, overlap)
		accounts := []string{"a", "b", "c", "d", "e"}
		for _, account := range accounts {
			f.open(account, 1000*money.USD, 0, KeyLimits{})
		}
		var n atomic.Int64
		s.set(func(p commit.Phase, run func() error) error {
			switch n.Add(1) % 9 { // a batch makes at most four calls, so every batch succeeds in the end
			case 2:
				return errLost
			case 5:
				return errors.Join(run(), errLost)
			}
			return run()
		})
		var charged atomic.Int64
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				for range 4 {
					h, err := f.admit(accounts[i%len(accounts)], money.USD)
					if err != nil {
						t.Error(err)
						return
					}
					if err := h.Settle(context.Background(), billed(1)); err != nil {
						t.Error(err)
						return
					}
					charged.Add(1)
				}
			})
		}
		group.Wait()
		s.set(nil)
		for _, account := range accounts {
			if st := f.state(account); st.Held != 0 || st.Balance != 1000*money.USD-40 {
				t.Errorf("%s is %+v, want 40 charges of a nano-dollar and nothing held", account, st)
			}
		}
		if charged.Load() != 200 {
			t.Errorf("%d settlements, want 200", charged.Load())
		}
		f.checkAudit()
	})
}

func TestServerThatEndsConnections(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	f := start(t, db)
	f.open("a", 1000*money.USD, 0, KeyLimits{})
	stop := make(chan struct{})
	// settledOne allows one break for each settled request, so that a slow machine makes progress too.
	settledOne := make(chan struct{}, 1)
	var ended atomic.Int64 // connections
	var killer, group sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-settledOne:
			}
			_ = db.View(context.Background(), func(tx *store.Tx) error {
				var n int64
				err := tx.QueryRow(`SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity ` +
					`WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n)
				ended.Add(n)
				return err
			})
		}
	})
	var settled, failed atomic.Int64
	for range 32 {
		group.Go(func() {
			for range 20 {
				h, err := f.admit("a", money.USD)
				if err != nil {
					failed.Add(1)
					continue
				}
				if err := h.Settle(context.Background(), billed(1)); err != nil {
					t.Errorf("settle: %v", err)
				}
				settled.Add(1)
				select {
				case settledOne <- struct{}{}:
				default:
				}
			}
		})
	}
	group.Wait()
	close(stop)
	killer.Wait()
	s := f.state("a")
	if s.Held != 0 || s.Balance != 1000*money.USD-money.Amount(settled.Load()) || settled.Load() == 0 {
		t.Errorf("got %+v after %d settlements and %d refused admissions, want one nano-dollar charged for each settlement and at least one",
			s, settled.Load(), failed.Load())
	}
	if ended.Load() < 20 {
		t.Errorf("%d connections were ended, want at least 20", ended.Load())
	}
	f.checkAudit()
}

func TestPoisonedOperationFailsAlone(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install)
		f.open("a", 1000*money.USD, 0, KeyLimits{})
		twin := admission("a", money.USD)
		if _, err := f.Admit(context.Background(), twin); err != nil {
			t.Fatal(err)
		}
		// The first batch waits until all others have queued, so that the failing operation is in a
		// large batch.
		var waiting sync.WaitGroup
		waiting.Add(1)
		var once sync.Once
		s.set(func(p commit.Phase, run func() error) error {
			once.Do(waiting.Wait)
			return run()
		})
		var good atomic.Int64
		var group sync.WaitGroup
		for i := range 101 {
			group.Go(func() {
				a := admission("a", money.USD)
				if i == 50 {
					a.Request = twin.Request // the row of its hold exists already
				}
				_, err := f.Admit(context.Background(), a)
				if i == 50 {
					wantCode(t, err, fault.ServiceUnavailable)
				} else if err != nil {
					t.Error(err)
				} else {
					good.Add(1)
				}
			})
		}
		waiting.Done()
		group.Wait()
		if st := f.state("a"); good.Load() != 100 || st.Held != 101*money.USD {
			t.Errorf("%d admitted, %s held; want 100 and 101", good.Load(), st.Held)
		}
		f.checkAudit()
	})
}

func TestCallerLeavesAtEachPoint(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install)
		f.open("a", money.USD, 0, KeyLimits{})
		for _, at := range []commit.Phase{commit.PhaseRead, commit.PhaseWrite} {
			for _, after := range []bool{false, true} {
				ctx, leave := context.WithCancel(context.Background())
				left := make(chan struct{})
				var once sync.Once
				s.set(func(p commit.Phase, run func() error) error {
					if p != at {
						return run()
					}
					var err error
					if after {
						err = run()
					}
					once.Do(func() { leave(); <-left })
					if !after {
						err = run()
					}
					return err
				})
				h, err := f.Admit(ctx, admission("a", money.USD))
				close(left)
				if h != nil || !errors.Is(err, context.Canceled) {
					t.Fatalf("phase %d: %v, %v; want the context's error", at, h, err)
				}
				s.set(nil)
				f.mustAdmit("a", money.USD).Release(failed()) // fits only if nothing is held
			}
		}
		// The caller leaves before a batch takes the admission, so it never runs.
		block := make(chan struct{})
		s.set(func(_ commit.Phase, run func() error) error { <-block; return run() })
		busy := make(chan error, 1)
		go func() {
			h, err := f.admit("a", 1)
			if err == nil {
				h.Release(failed())
			}
			busy <- err
		}()
		ctx, leave := context.WithCancel(context.Background())
		leave()
		if _, err := f.Admit(ctx, admission("a", money.USD)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		close(block)
		if err := <-busy; err != nil {
			t.Fatal(err)
		}
		f.mustAdmit("a", money.USD).Release(failed())
		if st := f.state("a"); st.Held != 0 || st.Balance != money.USD {
			t.Errorf("%+v; want nothing held or charged", st)
		}
		f.checkAudit()
	})
}

func TestOverloadRefusesAdmissionsNeverSettlements(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install, func(o *Options) { o.QueueWait = 20 * time.Millisecond })
		f.open("a", money.USD, 0, KeyLimits{})
		h := f.mustAdmit("a", money.USD/2)
		block := make(chan struct{})
		reached := make(chan struct{})
		var once sync.Once
		s.set(func(_ commit.Phase, run func() error) error {
			once.Do(func() { close(reached); <-block })
			return run()
		})
		f.Refused(Refusal{Request: "req_busy", Received: time.Now()}) // keeps the committer busy
		<-reached
		settled := make(chan error, 1)
		go func() { settled <- h.Settle(context.Background(), billed(1)) }()
		_, err := f.admit("a", 1)
		wantCode(t, err, fault.ServiceUnavailable)
		if fault.Of(err).RetryAfter == 0 {
			t.Error("the refusal has no Retry-After, want one")
		}
		close(block)
		if err := <-settled; err != nil {
			t.Errorf("the settlement: got %v, want no error", err)
		}
		f.checkAudit()
	})
}

func TestOutage(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install, func(o *Options) { o.OutageGrace = 60 * time.Millisecond })
		f.open("a", 100*money.USD, 0, KeyLimits{})
		taken, waiting, streamed := f.mustAdmit("a", money.USD), f.mustAdmit("a", money.USD), f.mustAdmit("a", money.USD)
		broken := make(chan struct{})
		var once sync.Once
		s.set(func(commit.Phase, func() error) error {
			once.Do(func() { close(broken) })
			return errLost
		})
		results := make(chan error, 1)
		go func() { results <- taken.Settle(context.Background(), billed(money.USD)) }()
		<-broken // the batch is being tried repeatedly
		if err := waiting.Settle(context.Background(), billed(money.USD)); !errors.Is(err, ErrNotSettled) {
			t.Errorf("a settlement in the queue: %v; want ErrNotSettled", err)
		}
		if err := <-results; !errors.Is(err, ErrUnknown) {
			t.Errorf("a settlement in a batch: %v; want ErrUnknown", err)
		}
		end := billed(money.USD)
		end.Streamed = true
		if err := streamed.Settle(context.Background(), end); !errors.Is(err, ErrUnknown) {
			t.Errorf("the settlement of a stream: %v; want ErrUnknown", err)
		}
		s.set(nil)
		f.close()
		// Only the stream is charged, because its client received a part of the answer.
		if st := f.state("a"); st.Held != 0 || st.Balance != 99*money.USD {
			t.Errorf("%+v; want one charge of 1", st)
		}
		f.checkAudit()
	})
}

// TestRefusalOfAConnection loses a prepared statement, as a pooler does. The ledger settles the
// request on another connection.
func TestRefusalOfAConnection(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install)
		f.open("a", money.USD, 0, KeyLimits{})
		for _, p := range []commit.Phase{commit.PhaseRead, commit.PhaseWrite} {
			h := f.mustAdmit("a", money.USD/2)
			s.set(breakFirst(1, p, func(func() error) error { return &pgconn.PgError{Code: "26000"} }))
			if err := h.Settle(context.Background(), billed(1)); err != nil {
				t.Fatal(err)
			}
		}
		if st := f.state("a"); st.Held != 0 || st.Balance != money.USD-2 {
			t.Errorf("%+v; want two charges", st)
		}
		f.checkAudit()
	})
}
