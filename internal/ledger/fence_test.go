package ledger

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/commit"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// cutOff makes the next batch lose the answer to its COMMIT, after or before the COMMIT took
// effect. It calls between before the node tries again.
func (s *script) cutOff(committed bool, between func()) {
	var once sync.Once
	s.set(func(p commit.Phase, run func() error) error {
		cut := false
		if p == commit.PhaseWrite {
			once.Do(func() { cut = true })
		}
		if !cut {
			return run()
		}
		if committed {
			if err := run(); err != nil {
				return err
			}
		}
		between()
		return errLost
	})
}

// sweeper returns a second node on the same database.
func (f *fixture) sweeper(db *store.DB) *Ledger {
	other := New(Options{DB: db, Node: join(f.t, db)})
	other.committer.Start()
	f.t.Cleanup(func() { _ = other.Close(context.Background()) })
	return other
}

// TestLostCommitMeetsFence loses the answer to a COMMIT; another node declares this one dead and
// sweeps before this one tries again. A caller with an error is not charged, a charged caller gets
// a success, and nothing stays held. (On SQLite there is no other node.)
func TestLostCommitMeetsFence(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
			var s script
			f := start(t, db, s.install)
			f.open("a", 100*money.USD, 0, KeyLimits{})
			other := f.sweeper(db)
			ctx := context.Background()
			dies := func() {
				f.fence()
				if err := other.committer.Sweep(ctx); err != nil {
					t.Error(err)
				}
			}

			// A settlement.
			h := f.mustAdmit("a", money.USD)
			if h.Lost() {
				t.Error("Lost of a living node's hold is true, want false")
			}
			s.cutOff(committed, dies)
			err, charged := h.Settle(ctx, billed(money.USD)), money.Amount(0)
			if committed {
				charged = money.USD
			}
			if (err == nil) != committed || (err != nil && !errors.Is(err, ErrNotSettled)) {
				t.Errorf("settled with %v, want no error if committed and ErrNotSettled otherwise", err)
			}
			s.set(nil)
			if !h.Lost() {
				t.Error("Lost of a hold of the former epoch is false, want true")
			}

			// An admission runs in the new epoch, or was admitted in the old one and is refused.
			// Its only receipt is the sweep's.
			s.cutOff(committed, dies)
			a := admission("a", money.USD)
			h, err = f.Admit(ctx, a)
			s.set(nil)
			if committed {
				wantCode(t, err, fault.ServiceUnavailable)
			} else if err != nil {
				t.Error(err)
			} else if err := h.Settle(ctx, billed(money.USD)); err != nil {
				t.Error(err)
			} else {
				charged += money.USD
			}

			// The admission of a job.
			s.cutOff(committed, dies)
			j, hold := jobAdmission(money.USD)
			if err := f.AdmitJob(ctx, j, &admitHook{}); err != nil {
				t.Error(err)
			}
			s.set(nil)
			if st := f.state("a"); st.Held != money.USD {
				t.Errorf("%s held with one job queued, want 1", st.Held)
			}

			// The end of the job.
			s.cutOff(committed, dies)
			if ended, err := f.EndJob(ctx, hold, &endHook{admitHook: &admitHook{}, end: End{Outcome: Billed, Cost: money.USD}}); err !=
				nil || !ended {
				t.Error(ended, err)
			}
			charged += money.USD
			s.set(nil)

			dies()
			if err := f.Confirm(ctx); err != nil {
				t.Error(err)
			}
			if st := f.state("a"); st.Held != 0 || st.Balance != 100*money.USD-charged {
				t.Errorf("%+v; want %s charged", st, charged)
			}
			for _, r := range f.requests(requestlog.Selection{}) {
				if r.Status >= 400 && r.Cost > 0 {
					t.Errorf("got a charge in %+v, want no charge of an error", r)
				}
			}
			f.checkAudit()
		})
	}
}

// TestLostCommitOfADeletedEpoch deletes the row of the dead epoch before the node can find out whether
// its batch was committed. No caller of a settlement gets ErrNotSettled.
func TestLostCommitOfADeletedEpoch(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.PostgreSQL(t), store.Options{})
	var s script
	f := start(t, db, s.install)
	f.open("a", 100*money.USD, 0, KeyLimits{})
	ctx := context.Background()
	gone := func() {
		f.fence()
		if err := node.Remove(ctx, db, f.node.Epoch()); err != nil {
			t.Error(err)
		}
	}
	h := f.mustAdmit("a", money.USD)
	s.cutOff(true, gone)
	if err := h.Settle(ctx, billed(money.USD)); !errors.Is(err, ErrUnknown) {
		t.Errorf("settled with %v; want ErrUnknown", err)
	}
	s.cutOff(true, gone)
	_, err := f.admit("a", money.USD)
	wantCode(t, err, fault.ServiceUnavailable)
	s.cutOff(true, gone)
	j, _ := jobAdmission(money.USD)
	if err := f.AdmitJob(ctx, j, &admitHook{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("admitted with %v; want ErrUnknown", err)
	}
	s.cutOff(true, gone)
	f.Refused(Refusal{Request: "req_refused", Status: 402, Received: time.Now()})
	for f.Confirm(ctx) != nil { // the first one may have been in the batch of the row
	}
	s.set(nil)
	if err := f.committer.Sweep(ctx); err != nil {
		t.Error(err)
	}
	if err := f.Confirm(ctx); err != nil { // the job of the disconnected client has been ended
		t.Error(err)
	}
	if st := f.state("a"); st.Held != 0 || st.Balance != 99*money.USD {
		t.Errorf("%+v; want one charge of 1, and nothing held", st)
	}
	if n := len(f.requests(requestlog.Selection{Status: 402})); n != 1 {
		t.Errorf("%d rows of the refusal; want 1", n)
	}
	f.checkAudit()
}

// TestIdleNodeRejoins checks that a heartbeat of a dead node makes the node rejoin without requests.
func TestIdleNodeRejoins(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		epoch := f.node.Epoch()
		f.fence()
		if err := f.Beat(context.Background()); !errors.Is(err, node.ErrFenced) {
			t.Fatal(err)
		}
		for f.node.Epoch() == epoch {
			if err := f.Confirm(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Beat(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestBatchNumberWentBack restores an older database. The node logs it and starts a new epoch.
func TestBatchNumberWentBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		f := start(t, db)
		f.open("a", 100*money.USD, 0, KeyLimits{})
		f.mustAdmit("a", money.USD).Release(failed())
		epoch := f.node.Epoch()
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			_, err := tx.Exec(`DELETE FROM node_batch WHERE epoch = $1`, epoch)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.mustAdmit("a", money.USD).Settle(context.Background(), billed(1)); err != nil {
			t.Error(err)
		}
		if f.node.Epoch() == epoch {
			t.Errorf("the node has the epoch %s, want a new one", epoch)
		}
		f.checkAudit()
	})
}
