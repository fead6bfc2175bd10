package ledger

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// lockAccount locks an account like a batch with a slow COMMIT on another node. The returned
// function ends that transaction.
func (f *fixture) lockAccount(account string) (unlock func()) {
	f.t.Helper()
	locked, free, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := f.db.Update(context.Background(), func(tx *store.Tx) error {
			if _, err := tx.Exec(`UPDATE ledger_account SET seq = seq WHERE id = $1`, account); err != nil {
				return err
			}
			close(locked)
			<-free
			return nil
		})
		if err != nil {
			f.t.Errorf("lock an account: %v", err)
		}
	}()
	<-locked
	var once sync.Once
	unlock = func() { once.Do(func() { close(free) }); <-ended }
	f.t.Cleanup(unlock)
	return unlock
}

// gather makes the operations of the function queue one batch: the committer is busy with a
// Confirm until all n are queued. Then the steps apply.
func (f *fixture) gather(s *script, n int, queue func(), steps func(p commit.Phase, run func() error) error) {
	f.t.Helper()
	busy, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.set(func(_ commit.Phase, run func() error) error {
		once.Do(func() { close(busy); <-release })
		return run()
	})
	go func() { _ = f.committer.Confirm(context.Background()) }()
	<-busy
	queue()
	for f.committer.Queued() < n {
		runtime.Gosched()
	}
	s.set(steps)
	close(release)
}

// onPostgreSQL starts a ledger with the open accounts hot and cool.
func onPostgreSQL(t *testing.T, change ...func(*Options)) (*fixture, *script) {
	t.Helper()
	var s script
	f := start(t, storetest.Open(t, storetest.PostgreSQL(t), store.Options{}), append(change, s.install)...)
	f.open("hot", 100*money.USD, 0, KeyLimits{})
	f.open("cool", 100*money.USD, 0, KeyLimits{})
	return f, &s
}

// TestLockedAccountStopsNoOther locks an account while operations of each kind for it, and admissions
// of another account, are in one batch. The others are answered before the lock ends, and then all.
func TestLockedAccountStopsNoOther(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	kinds := map[string]func(f *fixture) (run func() error){
		"admission": func(f *fixture) func() error {
			return func() error { _, err := f.admit("hot", money.USD); return err }
		},
		"settlement": func(f *fixture) func() error {
			h := f.mustAdmit("hot", money.USD)
			return func() error { return h.Settle(ctx, billed(money.USD)) }
		},
		"release": func(f *fixture) func() error {
			h := f.mustAdmit("hot", money.USD)
			return func() error { h.ended.Store(true); o := f.committer.End(h.open, failed()); <-o.Done; return o.Err }
		},
		"job": func(f *fixture) func() error {
			a := admission("hot", money.USD)
			a.Job = id.New("job_")
			return func() error { return f.AdmitJob(ctx, a, &admitHook{}) }
		},
		"end of a job": func(f *fixture) func() error {
			a := admission("hot", money.USD)
			a.Job = id.New("job_")
			if err := f.AdmitJob(ctx, a, &admitHook{}); err != nil {
				f.t.Fatal(err)
			}
			return func() error {
				_, err := f.EndJob(ctx, JobHold{Request: a.Request, Account: "hot", Key: a.Key},
					&endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD}})
				return err
			}
		},
		"sweep": func(f *fixture) func() error {
			f.mustAdmit("hot", money.USD)
			f.fence()
			if err := f.Confirm(ctx); err != nil { // starts a new epoch
				f.t.Fatal(err)
			}
			return func() error { return f.committer.Sweep(ctx) }
		},
		"refusal": func(f *fixture) func() error {
			return func() error {
				f.Refused(Refusal{Request: id.New("req_"), Account: "hot", Key: "hot_key", Status: 429, Received: time.Now()})
				for len(f.requests(requestlog.Selection{Account: "hot"})) == 0 {
					runtime.Gosched()
				}
				return nil
			}
		},
	}
	for name, prepare := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := onPostgreSQL(t)
			run := prepare(f)
			unlock := f.lockAccount("hot")
			hot, cool := make(chan error, 1), make(chan error, 3)
			f.gather(s, 4, func() {
				go func() { hot <- run() }()
				for range 3 {
					go func() { _, err := f.admit("cool", money.USD); cool <- err }()
				}
			}, nil)
			for range 3 {
				if err := <-cool; err != nil {
					t.Errorf("an admission of another account: got %v, want no error", err)
				}
			}
			select {
			case err := <-hot:
				t.Errorf("the operation of the locked account ended with %v, want it to wait", err)
			default:
			}
			unlock()
			if err := <-hot; err != nil {
				t.Error(err)
			}
			f.checkAudit()
		})
	}
}

// TestLostCommitOfAPassedOperation loses the answer to a COMMIT of a batch that has passed over an
// admission. Each admission is decided once, whatever became of the batch and of the node.
func TestLostCommitOfAPassedOperation(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, between := range map[string]func(f *fixture){
		"alive": func(*fixture) {},
		"dead":  func(f *fixture) { f.fence() },
		"gone": func(f *fixture) {
			f.fence()
			if err := node.Remove(ctx, f.db, f.node.Epoch()); err != nil {
				f.t.Error(err)
			}
		},
	} {
		for _, committed := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f, s := onPostgreSQL(t)
				ended := f.mustAdmit("cool", money.USD)
				unlock := f.lockAccount("hot")
				hot, cool := make(chan error, 1), make(chan error, 1)
				writes := 0
				f.gather(s, 2, func() {
					go func() { _, err := f.admit("hot", money.USD); hot <- err }()
					go func() { cool <- ended.Settle(ctx, billed(money.USD)) }()
				}, func(p commit.Phase, run func() error) error {
					if p == commit.PhaseWrite {
						writes++
					}
					if p != commit.PhaseWrite || writes != 2 { // the first is of gather's batch
						return run()
					}
					if committed {
						if err := run(); err != nil {
							return err
						}
					}
					between(f)
					return errLost
				})
				err := <-cool
				unlock()
				if err := <-hot; err != nil {
					t.Errorf("the passed admission: got %v, want no error", err)
				}
				s.set(nil)
				if err := f.committer.Sweep(ctx); err != nil {
					t.Error(err)
				}
				charged := money.Amount(0)
				for _, r := range f.requests(requestlog.Selection{Account: "cool"}) {
					charged += r.Cost
				}
				if err == nil && charged != money.USD || errors.Is(err, ErrNotSettled) && charged != 0 {
					t.Errorf("settled with %v and charged %s, want 1 after a success and 0 after ErrNotSettled", err, charged)
				}
				if st := f.state("hot"); st.Held != money.USD {
					t.Errorf("%s held of the passed admission; want 1", st.Held)
				}
				f.checkAudit()
			})
		}
	}
}

// TestBatchWaitsForAnOverdueOperation passes over an admission until its batch waits. That batch also
// takes the operations queued while it waited.
func TestBatchWaitsForAnOverdueOperation(t *testing.T) {
	t.Parallel()
	decided := make(chan int, 100) // operations by batch
	f, s := onPostgreSQL(t, func(o *Options) {
		o.Observer.Batch = func(operations int, _ time.Duration) { decided <- operations }
	})
	unlock := f.lockAccount("hot")
	results := make(chan error, 3)
	admit := func(account string) { _, err := f.admit(account, money.USD); results <- err }
	waits := make(chan struct{})
	f.gather(s, 2, func() { go admit("hot"); go admit("cool") }, func(p commit.Phase, run func() error) error {
		if p == commit.PhaseLock {
			before := f.committer.Queued()
			go admit("hot")
			go admit("cool")
			for f.committer.Queued() < before+2 {
				runtime.Gosched()
			}
			close(waits)
			unlock()
		}
		return run()
	})
	if err := <-results; err != nil { // of cool
		t.Error(err)
	}
	<-waits
	for range 3 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := []int{<-decided, <-decided, <-decided}; !slices.Equal(n, []int{1, 1, 3}) { // the first is of gather
		t.Errorf("the batches decided %v operations; want [1 1 3]", n)
	}
	f.checkAudit()
}

// TestOverdueOperationIsNotStarved keeps the committer busy with another account while an account is
// locked whenever a batch begins. The batch waits in the end.
func TestOverdueOperationIsNotStarved(t *testing.T) {
	t.Parallel()
	f, s := onPostgreSQL(t)
	unlock := f.lockAccount("hot")
	hot := make(chan error, 1)
	go func() { _, err := f.admit("hot", money.USD); hot <- err }()
	var waited atomic.Bool
	s.set(func(p commit.Phase, run func() error) error {
		if p == commit.PhaseLock && waited.CompareAndSwap(false, true) {
			unlock()
		}
		return run()
	})
	for range 100 {
		if _, err := f.admit("cool", 1); err != nil {
			t.Fatal(err)
		}
		if waited.Load() {
			break
		}
	}
	if err := <-hot; err != nil || !waited.Load() {
		t.Error(err, waited.Load())
	}
}

// TestLockTimeout locks an account for longer than LockTimeout: the log names the account, and its
// operations go on as soon as the lock ends.
func TestLockTimeout(t *testing.T) {
	t.Parallel()
	var log lockLogCounter
	f, _ := onPostgreSQL(t, func(o *Options) { o.LockTimeout = 20 * time.Millisecond; o.Log = slog.New(&log) })
	h := f.mustAdmit("hot", money.USD)
	unlock := f.lockAccount("hot")
	settled := make(chan error, 1)
	go func() { settled <- h.Settle(context.Background(), billed(money.USD)) }()
	for log.n.Load() == 0 {
		if _, err := f.admit("cool", 1); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	if err := <-settled; err != nil {
		t.Error(err)
	}
	f.checkAudit()
}

// lockLogCounter counts the log lines about the locked account hot.
type lockLogCounter struct{ n atomic.Int64 }

func (l *lockLogCounter) Enabled(context.Context, slog.Level) bool { return true }
func (l *lockLogCounter) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lockLogCounter) WithGroup(string) slog.Handler            { return l }
func (l *lockLogCounter) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if strings.Contains(r.Message, "locked an account") && a.Key == "account" && a.Value.String() == "hot" {
			l.n.Add(1)
		}
		return true
	})
	return nil
}

// TestCallerOfAPassedAdmissionLeaves ends the context of a passed admission. It is
// refused while the account is still locked.
func TestCallerOfAPassedAdmissionLeaves(t *testing.T) {
	t.Parallel()
	f, s := onPostgreSQL(t)
	unlock := f.lockAccount("hot")
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	f.gather(s, 2, func() {
		go func() { _, err := f.Admit(ctx, admission("hot", money.USD)); left <- err }()
		go func() { _, _ = f.admit("cool", money.USD) }()
	}, nil)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the context's error", err)
	}
	unlock()
	f.mustAdmit("hot", 100*money.USD) // fits only if nothing is held
	f.checkAudit()
}

// TestMissingAccount admits for a missing account, alone and beside others. PostgreSQL
// passes over the account at first, as if it were locked.
func TestMissingAccount(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var s script
		f := start(t, db, s.install)
		f.open("cool", 100*money.USD, 0, KeyLimits{})
		_, err := f.admit("nobody", money.USD)
		wantCode(t, err, fault.InvalidAPIKey)
		results := make(chan error, 1)
		f.gather(&s, 2, func() {
			go func() { _, err := f.admit("nobody", money.USD); results <- err }()
			go func() { _, _ = f.admit("cool", money.USD) }()
		}, nil)
		wantCode(t, <-results, fault.InvalidAPIKey)
		f.checkAudit()
	})
}
