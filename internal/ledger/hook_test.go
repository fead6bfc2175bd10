package ledger

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/ledger/commit"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// admitHook counts the calls of its methods and writes nothing.
type admitHook struct {
	refuse error // returned by Decide
	reads  atomic.Int64
	writes atomic.Int64
	undone chan struct{} // closed when the admission is undone
}

func (p *admitHook) Read(*store.Batch)         { p.reads.Add(1) }
func (p *admitHook) Write(*store.Batch, int64) { p.writes.Add(1) }
func (p *admitHook) Decide(int64) error        { return p.refuse }
func (p *admitHook) Undo() EndHook             { return &endHook{admitHook: p} }

// endHook ends a job.
type endHook struct {
	*admitHook
	end      End
	stay     bool // Decide keeps the job running
	orphaned bool // returned by Orphaned
}

func (p *endHook) Decide(int64) (End, bool) {
	if p.undone != nil {
		close(p.undone)
	}
	if p.end.Outcome == 0 {
		p.end.Outcome = Failed
	}
	return p.end, !p.stay
}

func (p *endHook) Orphaned() bool { return p.orphaned }

func jobAdmission(amount money.Amount) (Admission, JobHold) {
	a := admission("a", amount)
	a.Job = id.New("job_")
	return a, JobHold{Request: a.Request, Account: a.Account, Key: a.Key}
}

func TestHook(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 100*money.USD, 0, KeyLimits{})
		ctx := t.Context()
		a, hold := jobAdmission(money.USD)
		refused := errors.New("no")
		if err := f.AdmitJob(ctx, a, &admitHook{refuse: refused}); !errors.Is(err, refused) {
			t.Fatalf("refused by its hook: got %v, want %v", err, refused)
		}
		denied, _ := jobAdmission(1000 * money.USD)
		var unwritten admitHook
		if err := f.AdmitJob(ctx, denied, &unwritten); err == nil || unwritten.writes.Load() != 0 {
			t.Fatalf("an admission beyond the balance: got %v, %d writes; want an error without a write", err, unwritten.writes.Load())
		}
		if s := f.state("a"); s.Held != 0 {
			t.Fatalf("%s held after refusals, want 0", s.Held)
		}
		var admitted admitHook
		if err := f.AdmitJob(ctx, a, &admitted); err != nil || admitted.writes.Load() != 1 {
			t.Fatalf("admission: got %v, %d writes; want one write", err, admitted.writes.Load())
		}
		if ended, err := f.EndJob(ctx, hold, &endHook{admitHook: &admitHook{}, stay: true}); err != nil || ended {
			t.Fatalf("an end that the hook refuses: got %v, %v; want false", ended, err)
		}
		if s := f.state("a"); s.Held != money.USD {
			t.Fatalf("%s held, want 1", s.Held)
		}
		end := &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD / 4}}
		if ended, err := f.EndJob(ctx, hold, end); err != nil || !ended || end.writes.Load() != 1 {
			t.Fatalf("end: got %v, %v, %d writes; want true with one write", ended, err, end.writes.Load())
		}
		again := &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD / 4}}
		if ended, err := f.EndJob(ctx, hold, again); err != nil || ended || again.writes.Load() != 0 {
			t.Fatalf("a second end: got %v, %v, %d writes; want false without a write", ended, err, again.writes.Load())
		}
		if s := f.state("a"); s.Held != 0 || s.Balance != 100*money.USD-money.USD/4 {
			t.Errorf("got %+v, want a charge of 0.25 and nothing held", s)
		}
		f.checkAudit()
	})
}

// TestLateAdmission cancels the context of a job's admission during its commit. The admission is
// undone once, and nothing stays held.
func TestLateAdmission(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		writing, release := make(chan struct{}), make(chan struct{})
		var late atomic.Bool
		f := start(t, db, func(o *Options) {
			o.exec = func(ctx context.Context, s *store.Session, b *store.Batch, p commit.Phase) error {
				if p == commit.PhaseWrite && late.CompareAndSwap(true, false) {
					close(writing)
					<-release
				}
				return s.Run(ctx, b)
			}
		})
		f.open("a", 100*money.USD, 0, KeyLimits{})
		late.Store(true)
		a, _ := jobAdmission(money.USD)
		ctx, leave := context.WithCancel(t.Context())
		hook := &admitHook{undone: make(chan struct{})}
		answer := make(chan error, 1)
		go func() { answer <- f.AdmitJob(ctx, a, hook) }()
		<-writing
		leave()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Fatalf("the caller got %v, want context.Canceled", err)
		}
		close(release)
		select {
		case <-hook.undone:
		case <-time.After(10 * time.Second):
			t.Fatal("the admission was not undone within 10 s")
		}
		// The next operation waits for the batch that undoes the admission.
		b, hold := jobAdmission(money.USD / 2)
		if err := f.AdmitJob(t.Context(), b, &admitHook{}); err != nil {
			t.Fatal(err)
		}
		if ended, err := f.EndJob(t.Context(), hold, &endHook{admitHook: &admitHook{}}); err != nil || !ended {
			t.Fatal(ended, err)
		}
		if s := f.state("a"); s.Held != 0 || s.Balance != 100*money.USD {
			t.Errorf("got %+v, want nothing charged or held", s)
		}
		f.checkAudit()
	})
}

// TestHookAfterALostCommit breaks the connection around the commits of a job's admission and end. Both
// take effect once, and the callers get the outcome.
func TestHookAfterALostCommit(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]func(run func() error) error{
		"committed":     func(run func() error) error { return errors.Join(run(), errLost) },
		"never arrived": func(func() error) error { return errLost },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *store.DB) {
				var s script
				f := start(t, db, s.install)
				f.open("a", 100*money.USD, 0, KeyLimits{})
				a, hold := jobAdmission(money.USD)
				s.set(breakFirst(2, commit.PhaseWrite, broken))
				if err := f.AdmitJob(t.Context(), a, &admitHook{}); err != nil {
					t.Fatal(err)
				}
				if held := f.state("a").Held; held != money.USD {
					t.Errorf("%s held, want 1", held)
				}
				s.set(breakFirst(2, commit.PhaseWrite, broken))
				end := &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD / 4}}
				if ended, err := f.EndJob(t.Context(), hold, end); err != nil || !ended {
					t.Fatalf("end: got %v, %v; want true", ended, err)
				}
				if st := f.state("a"); st.Held != 0 || st.Balance != 100*money.USD-money.USD/4 {
					t.Errorf("got %+v, want one charge of 0.25 and nothing held", st)
				}
				f.checkAudit()
			})
		})
	}
}
