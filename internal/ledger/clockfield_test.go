package ledger

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/node"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// TestLedgerReadsItsOwnClock checks that durations and start times come from Options.Now, which the
// test moves by whole milliseconds.
func TestLedgerReadsItsOwnClock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		const lease = 10 * time.Second
		c := newClock()
		var strange atomic.Int64
		note := func(took time.Duration) {
			if took%time.Millisecond != 0 {
				strange.Store(int64(took))
			}
		}
		self, err := node.Join(t.Context(), node.Options{DB: db, Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		f := start(t, db, func(o *Options) {
			o.Now, o.Node = c.now, self
			o.Observer.Admitted = func(waited time.Duration, _ bool) { note(waited) }
			o.Observer.Batch = func(_ int, took time.Duration) { note(took) }
		})
		f.open("a", money.USD, 0, KeyLimits{})
		f.open("b", 0, 0, KeyLimits{})

		// A refusal lasted from its arrival until now.
		a := admission("a", 2*money.USD)
		a.Received = c.now().Add(-1234 * time.Millisecond)
		_, err = f.Admit(t.Context(), a)
		wantCode(t, err, fault.InsufficientQuota)

		// Refusals above the limit of a second get a row after that second.
		const perSecond = 100
		logged := func() (n int64) {
			t.Helper()
			if err := f.committer.Confirm(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, r := range f.requests(requestlog.Selection{Account: "b"}) {
				n += r.StandsFor
			}
			return n
		}
		for range 2*perSecond + 1 {
			f.Refused(Refusal{Request: id.New("req_"), Account: "b", Key: "b", Status: 429, Code: "b", Received: c.now()})
		}
		for range 3 {
			if err := f.logSampled(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := logged(); n != perSecond {
			t.Errorf("%d refusals are logged before the end of the second, want %d", n, perSecond)
		}
		c.add(time.Second)
		if err := f.logSampled(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := logged(); n != 2*perSecond+1 {
			t.Errorf("%d refusals are logged after the second, want %d", n, 2*perSecond+1)
		}

		// A database that was recently written is writable.
		if err := f.mustAdmit("a", 1).Settle(t.Context(), billed(1)); err != nil {
			t.Fatal(err)
		}
		if err := f.Writable(); err != nil {
			t.Error(err)
		}
		c.add(lease + time.Millisecond)
		if f.Writable() == nil {
			t.Error("Writable returned nil without a commit for a lease, want an error")
		}
		if err := errors.Join(f.Beat(t.Context()), f.Writable()); err != nil {
			t.Error(err)
		}
		f.close()
		if list := f.requests(requestlog.Selection{Account: "a", Status: 402}); len(list) != 1 || list[0].DurationMS != 1234 {
			t.Errorf("the refusal's receipt %+v; want one that took 1234 ms", list)
		}
		if took := time.Duration(strange.Load()); took != 0 {
			t.Errorf("got a duration of %v, want whole milliseconds of the test's clock", took)
		}
	})
}
