package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tollgate/internal/egress"
	"tollgate/internal/fault"
	"tollgate/internal/httpapi"
	"tollgate/internal/wire/jobrequest"
)

// TestFetchesAreShared lets accounts take their maximum one after the other: each leaves some for
// the next, and in the end all slots are free.
func TestFetchesAreShared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		video bool
		want  []int64 // of the accounts, in order of arrival
	}{
		{true, []int64{4, 2, 1, 1, 0}},
		{false, []int64{12, 6, 3, 2, 1, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFetches()
			ctx, leave := context.WithCancel(t.Context())
			var all sync.WaitGroup
			got := make([]int64, len(c.want))
			for i := range c.want {
				for range 30 {
					all.Go(func() {
						done, err := f.acquire(ctx, fmt.Sprint("account ", i), c.video)
						if err != nil {
							return
						}
						atomic.AddInt64(&got[i], 1)
						<-ctx.Done()
						done()
					})
				}
				synctest.Wait()
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("video %v: the accounts got %v, want %v", c.video, got, c.want)
			}
			done, err := f.acquire(ctx, "other kind", !c.video)
			if err != nil {
				t.Fatal(err)
			}
			done()
			leave()
			all.Wait()
			idle(t, f.images, imageFetches)
			idle(t, f.videos, videoFetches)
		})
	}
}

// idle checks that all slots are free.
func idle(t *testing.T, turns *fairSlots, n int) {
	t.Helper()
	if turns.free != n || len(turns.shares) != 0 {
		t.Errorf("%d of %d turns are free, %d accounts are left", turns.free, n, len(turns.shares))
	}
}

func TestNextShare(t *testing.T) {
	t.Parallel()
	one := make([]chan struct{}, 1)
	for name, c := range map[string]struct {
		free   int
		shares []*accountShare
		want   int // -1 for none
	}{
		"nobody":              {4, nil, -1},
		"nobody waits":        {4, []*accountShare{{slots: 1}}, -1},
		"none is free":        {0, []*accountShare{{waiting: one}}, -1},
		"the last, to none":   {1, []*accountShare{{waiting: one}}, 0},
		"the last, to one":    {1, []*accountShare{{slots: 1, waiting: one}}, -1},
		"more than it holds":  {3, []*accountShare{{slots: 2, waiting: one}}, 0},
		"as many as it holds": {2, []*accountShare{{slots: 2, waiting: one}}, -1},
		"the fewest": {9, []*accountShare{{slots: 2, changed: 1, waiting: one}, {slots: 1, changed: 9, waiting: one},
			{slots: 3, changed: 2, waiting: one}}, 1},
		"the longest waiting": {9, []*accountShare{{slots: 1, changed: 7, waiting: one}, {slots: 1, changed: 3, waiting: one},
			{slots: 1, changed: 5, waiting: one}}, 1},
		"not those with fewer": {9, []*accountShare{{slots: 0}, {slots: 2, waiting: one}}, 1},
	} {
		want := (*accountShare)(nil)
		if c.want >= 0 {
			want = c.shares[c.want]
		}
		if got := nextShare(c.free, slices.Values(c.shares)); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// TestNewcomersDoNotStarve has accounts with slow hosts and long queues: a newcomer waits no longer
// than documented.
func TestNewcomersDoNotStarve(t *testing.T) {
	t.Parallel()
	for _, accounts := range []int{1, 2, 7, 8, 9, 40} {
		synctest.Test(t, func(t *testing.T) {
			turns := newFairSlots(videoFetches)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var all sync.WaitGroup
			for i := range accounts {
				for range 20 {
					all.Go(func() {
						for {
							done, err := turns.acquire(ctx, fmt.Sprint(i))
							if err != nil {
								return
							}
							<-time.After(fetchTimeout)
							done()
						}
					})
				}
			}
			<-time.After(fetchTimeout*7/2 + time.Second) // in the middle of it
			synctest.Wait()
			before := 0 // accounts in front of the newcomer
			for _, s := range turns.shares {
				if s.slots == 0 {
					before++
				}
			}
			start := time.Now()
			done, err := turns.acquire(ctx, "new")
			if err != nil {
				t.Fatal(err)
			}
			waited, most := time.Since(start), fetchTimeout*time.Duration(before/videoFetches+1)
			if accounts <= 2 {
				most = 0 // they leave some
			}
			if waited > most {
				t.Errorf("beside %d accounts it waited %s behind %d of them, want %s at most", accounts, waited, before, most)
			}
			done()
			leave()
			all.Wait()
			idle(t, turns, videoFetches)
		})
	}
}

// TestLeavingWhileWaiting cancels some waiting contexts: they return its error, and the others get
// their slots.
func TestLeavingWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newFairSlots(1)
		done, err := turns.acquire(t.Context(), "holder")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := turns.acquire(ctx, "leaver"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if len(turns.shares) != 1 {
			t.Errorf("%d accounts are known", len(turns.shares))
		}
		// The slot and the cancellation come at the same moment; either may win.
		for range 200 {
			ctx, leave := context.WithCancel(t.Context())
			var both sync.WaitGroup
			both.Go(func() {
				if done, err := turns.acquire(ctx, "leaver"); err == nil {
					done()
				}
			})
			synctest.Wait()
			both.Go(leave)
			done()
			both.Wait()
			if done, err = turns.acquire(t.Context(), "holder"); err != nil {
				t.Fatal(err)
			}
		}
		done()
		idle(t, turns, 1)
	})
}

// TestSlotsAreNeverLost runs random operations and checks all invariants after each.
func TestSlotsAreNeverLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(12)
		turns := newFairSlots(n)
		type wish struct {
			account string
			turn    chan struct{}
		}
		var asked []wish // and neither withdrawn nor given back
		granted := func(w wish) bool {
			select {
			case <-w.turn:
				return true
			default:
				return false
			}
		}
		end := func(i int) {
			w := asked[i]
			asked = slices.Delete(asked, i, i+1)
			if had := granted(w); turns.dequeue(w.account, w.turn) == had {
				t.Fatalf("seed %d: withdrawn %v, but the turn has come %v", seed, !had, had)
			} else if had {
				turns.release(w.account)
			}
		}
		check := func() {
			t.Helper()
			held, waiting := map[string]int{}, map[string]int{}
			most := 0
			for _, w := range asked {
				if granted(w) {
					held[w.account]++
				} else {
					waiting[w.account]++
				}
			}
			total := 0
			for account, s := range turns.shares {
				if s.slots != held[account] || len(s.waiting) != waiting[account] || s.slots+len(s.waiting) == 0 {
					t.Fatalf("seed %d: %s holds %d and waits for %d, noted are %d and %d", seed, account, held[account], waiting[account], s.slots,
						len(s.waiting))
				}
				total, most = total+s.slots, max(most, s.slots)
			}
			switch {
			case turns.free < 0 || total+turns.free != n || len(asked) != total+sum(waiting):
				t.Fatalf("seed %d: %d turns of %d are held, %d are free", seed, total, n, turns.free)
			case most > (n+1)/2:
				t.Fatalf("seed %d: an account holds %d of %d", seed, most, n)
			case nextShare(turns.free, maps.Values(turns.shares)) != nil:
				t.Fatalf("seed %d: somebody waits for a turn that is free", seed)
			}
		}
		for range 200 {
			if len(asked) == 0 || random.IntN(5) < 3 {
				account := fmt.Sprint(random.IntN(1 + int(seed%9)))
				asked = append(asked, wish{account, turns.enqueue(account)})
			} else {
				end(random.IntN(len(asked)))
			}
			check()
		}
		for len(asked) > 0 { // in the order of their slots: every account gets one
			i := slices.IndexFunc(asked, granted)
			if i < 0 {
				t.Fatalf("seed %d: %d wait and nobody holds a turn", seed, len(asked))
			}
			end(i)
			check()
		}
		idle(t, turns, n)
	}
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestConcurrentSlots has everybody come, wait, leave and end at the same time.
func TestConcurrentSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		turns := newFairSlots(imageFetches)
		var inside, most atomic.Int64
		var all sync.WaitGroup
		for i := range 400 {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			all.Go(func() {
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(40))*time.Second)
					if done, err := turns.acquire(ctx, fmt.Sprint(i%23)); err == nil {
						most.Store(max(most.Load(), inside.Add(1)))
						<-time.After(time.Duration(random.IntN(5)) * time.Second)
						inside.Add(-1)
						done()
					}
					cancel()
				}
			})
		}
		all.Wait()
		if most.Load() > imageFetches || inside.Load() != 0 {
			t.Errorf("%d at a time", most.Load())
		}
		idle(t, turns, imageFetches)
	})
}

// TestWaitingIsBounded fills an account's limit of submissions: the next one is refused before
// anything is fetched, other accounts are not.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	d := &server{fetches: newFetches()}
	var ends []func()
	for range maxAccountSubmissions {
		leave, ok := d.fetches.begin("many")
		if !ok {
			t.Fatal("refused too early")
		}
		ends = append(ends, leave)
	}
	submission := &jobrequest.Request{
		References: []jobrequest.Reference{{Param: "image", Image: true, Address: "http://host.example/a.png"}}}
	_, err := d.fetchReferences(t.Context(), "many", submission) // it has nothing to fetch with
	if f := fault.Of(err); err == nil || f.Code != fault.ServiceUnavailable || f.RetryAfter != busyRetryAfter {
		t.Errorf("%v", err)
	}
	leave, ok := d.fetches.begin("few")
	if !ok {
		t.Error("another account is refused")
	}
	for _, leave := range append(ends, leave) {
		leave()
	}
	if len(d.fetches.submissions) != 0 {
		t.Errorf("%d accounts are left", len(d.fetches.submissions))
	}
}

// TestReferencesCountAsBodies checks that a fetched file uses the memory budget of its account,
// that reading stops at the budget, and that the memory is returned.
func TestReferencesCountAsBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the reader may have left
	}))
	defer host.Close()
	d := &server{memory: httpapi.NewBudget(1, size/2, LargestReference)} // as much as one such file
	d.Guard = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	reference := &jobrequest.Reference{Address: host.URL, Param: "image"}
	first := d.memory.File("a")
	if data, err := d.referenceBytes(t.Context(), reference, first.Grow); err != nil || len(data) != size {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	second := d.memory.File("b")
	_, err := d.referenceBytes(t.Context(), reference, second.Grow)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("one more than there is room for: %v", err)
	}
	second.Release()
	first.Release()
	if _, err := d.referenceBytes(t.Context(), reference, second.Grow); err != nil {
		t.Error("when there is room again:", err)
	}
	second.Release()
	all := d.memory.File("c")
	if err := all.Grow(2 * (size + 2)); err != nil {
		t.Error("not all was given back:", err)
	}
	if err := all.Grow(1); err == nil {
		t.Error("there is room beside all of it")
	}
}

// TestFirstOf checks that the fault of a reference is reported before its consequences for the
// others.
func TestFirstOf(t *testing.T) {
	t.Parallel()
	internal, theirs := fault.Unavailable(errors.New("connection lost")), fault.At(fault.InvalidRequest, "mask", "No.")
	consequence := fmt.Errorf("fetch: %w", context.Canceled)
	for name, tt := range map[string]struct {
		errs []error
		want error
	}{
		"none":            {[]error{nil, nil}, nil},
		"echo first":      {[]error{consequence, nil, theirs}, theirs},
		"ours first":      {[]error{internal, theirs}, theirs},
		"ours alone":      {[]error{consequence, internal}, internal},
		"nothing but one": {[]error{nil, consequence}, consequence},
	} {
		if got := mainError(tt.errs); !errors.Is(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
