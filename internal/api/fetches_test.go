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

// TestFetchesAreShared lets accounts take their maximum one after the other: each leaves some slots
// for the next, and in the end all slots are free.
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

// idle fails the test unless all slots are free.
func idle(t *testing.T, slots *fairSlots, n int) {
	t.Helper()
	if slots.free != n || len(slots.shares) != 0 {
		t.Errorf("%d of %d slots are free, %d accounts are left", slots.free, n, len(slots.shares))
	}
}

func TestNextShare(t *testing.T) {
	t.Parallel()
	one := make([]chan struct{}, 1)
	for name, c := range map[string]struct {
		free   int
		shares []*accountShare
		want   int // index of the chosen share; -1 for nil
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
			slots := newFairSlots(videoFetches)
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var all sync.WaitGroup
			for i := range accounts {
				for range 20 {
					all.Go(func() {
						for {
							done, err := slots.acquire(ctx, fmt.Sprint(i))
							if err != nil {
								return
							}
							<-time.After(fetchTimeout)
							done()
						}
					})
				}
			}
			<-time.After(fetchTimeout*7/2 + time.Second) // in the middle of the first accounts' fetches
			synctest.Wait()
			before := 0 // accounts in front of the newcomer
			for _, s := range slots.shares {
				if s.slots == 0 {
					before++
				}
			}
			start := time.Now()
			done, err := slots.acquire(ctx, "new")
			if err != nil {
				t.Fatal(err)
			}
			waited, most := time.Since(start), fetchTimeout*time.Duration(before/videoFetches+1)
			if accounts <= 2 {
				most = 0 // the first accounts leave some slots free
			}
			if waited > most {
				t.Errorf("with %d accounts, %d of them ahead, the newcomer waited %s, want at most %s", accounts, before, waited, most)
			}
			done()
			leave()
			all.Wait()
			idle(t, slots, videoFetches)
		})
	}
}

// TestLeavingWhileWaiting cancels some waiting contexts: they return its error, and the others get
// their slots.
func TestLeavingWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := newFairSlots(1)
		done, err := slots.acquire(t.Context(), "holder")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := slots.acquire(ctx, "leaver"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if len(slots.shares) != 1 {
			t.Errorf("%d accounts are known", len(slots.shares))
		}
		// The slot and the cancellation come at the same moment; either may win.
		for range 200 {
			ctx, leave := context.WithCancel(t.Context())
			var both sync.WaitGroup
			both.Go(func() {
				if done, err := slots.acquire(ctx, "leaver"); err == nil {
					done()
				}
			})
			synctest.Wait()
			both.Go(leave)
			done()
			both.Wait()
			if done, err = slots.acquire(t.Context(), "holder"); err != nil {
				t.Fatal(err)
			}
		}
		done()
		idle(t, slots, 1)
	})
}

// TestSlotsAreNeverLost runs random operations and checks all invariants after each.
func TestSlotsAreNeverLost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(12)
		slots := newFairSlots(n)
		type wish struct {
			account string
			turn    chan struct{}
		}
		var pending []wish // requests neither withdrawn nor released
		granted := func(w wish) bool {
			select {
			case <-w.turn:
				return true
			default:
				return false
			}
		}
		end := func(i int) {
			w := pending[i]
			pending = slices.Delete(pending, i, i+1)
			if had := granted(w); slots.dequeue(w.account, w.turn) == had {
				t.Fatalf("seed %d: withdrawn %v, but granted %v", seed, !had, had)
			} else if had {
				slots.release(w.account)
			}
		}
		check := func() {
			t.Helper()
			held, waiting := map[string]int{}, map[string]int{}
			most := 0
			for _, w := range pending {
				if granted(w) {
					held[w.account]++
				} else {
					waiting[w.account]++
				}
			}
			total := 0
			for account, s := range slots.shares {
				if s.slots != held[account] || len(s.waiting) != waiting[account] || s.slots+len(s.waiting) == 0 {
					t.Fatalf("seed %d: %s has %d slots and %d requests, recorded are %d and %d", seed, account, held[account], waiting[account], s.slots,
						len(s.waiting))
				}
				total, most = total+s.slots, max(most, s.slots)
			}
			switch {
			case slots.free < 0 || total+slots.free != n || len(pending) != total+sum(waiting):
				t.Fatalf("seed %d: %d slots of %d are in use, %d are free", seed, total, n, slots.free)
			case most > (n+1)/2:
				t.Fatalf("seed %d: an account has %d of %d slots", seed, most, n)
			case nextShare(slots.free, maps.Values(slots.shares)) != nil:
				t.Fatalf("seed %d: a request waits although a slot is free", seed)
			}
		}
		for range 200 {
			if len(pending) == 0 || random.IntN(5) < 3 {
				account := fmt.Sprint(random.IntN(1 + int(seed%9)))
				pending = append(pending, wish{account, slots.enqueue(account)})
			} else {
				end(random.IntN(len(pending)))
			}
			check()
		}
		for len(pending) > 0 { // in the order of their slots: every request gets one
			i := slices.IndexFunc(pending, granted)
			if i < 0 {
				t.Fatalf("seed %d: %d requests wait and no slot is in use", seed, len(pending))
			}
			end(i)
			check()
		}
		idle(t, slots, n)
	}
}

func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestConcurrentSlots acquires, releases and cancels from many goroutines at the same time.
func TestConcurrentSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := newFairSlots(imageFetches)
		var inside, most atomic.Int64
		var all sync.WaitGroup
		for i := range 400 {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			all.Go(func() {
				for range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+random.IntN(40))*time.Second)
					if done, err := slots.acquire(ctx, fmt.Sprint(i%23)); err == nil {
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
			t.Errorf("%d slots in use at a time", most.Load())
		}
		idle(t, slots, imageFetches)
	})
}

// TestWaitingIsBounded fills an account's limit of submissions: the next submission is rejected
// before anything is fetched, unlike submissions of other accounts.
func TestWaitingIsBounded(t *testing.T) {
	t.Parallel()
	d := &server{fetches: newFetches()}
	var ends []func()
	for range maxAccountSubmissions {
		leave, ok := d.fetches.begin("many")
		if !ok {
			t.Fatal("rejected too early")
		}
		ends = append(ends, leave)
	}
	submission := &jobrequest.Request{
		References: []jobrequest.Reference{{Param: "image", Image: true, Address: "http://host.example/a.png"}}}
	_, err := d.fetchReferences(t.Context(), "many", submission) // d has no client to fetch with
	if f := fault.Of(err); err == nil || f.Code != fault.ServiceUnavailable || f.RetryAfter != busyRetryAfter {
		t.Errorf("%v", err)
	}
	leave, ok := d.fetches.begin("few")
	if !ok {
		t.Error("a submission of another account is rejected")
	}
	for _, leave := range append(ends, leave) {
		leave()
	}
	if len(d.fetches.submissions) != 0 {
		t.Errorf("%d accounts are left", len(d.fetches.submissions))
	}
}

// TestReferencesCountAsBodies checks that a fetched file uses the memory budget of its account,
// that reading stops at the budget, and that the memory is released.
func TestReferencesCountAsBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), size)) // the reader may have closed the connection
	}))
	defer host.Close()
	d := &server{memory: httpapi.NewBudget(1, size/2, LargestReference)} // enough for one such file
	d.Guard = egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	reference := &jobrequest.Reference{Address: host.URL, Param: "image"}
	first := d.memory.File("a")
	if data, err := d.referenceBytes(t.Context(), reference, first.Grow); err != nil || len(data) != size {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	second := d.memory.File("b")
	_, err := d.referenceBytes(t.Context(), reference, second.Grow)
	if f := fault.Of(err); f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("file beyond the budget: %v", err)
	}
	second.Release()
	first.Release()
	if _, err := d.referenceBytes(t.Context(), reference, second.Grow); err != nil {
		t.Error("after the release:", err)
	}
	second.Release()
	all := d.memory.File("c")
	if err := all.Grow(2 * (size + 2)); err != nil {
		t.Error("not all memory was released:", err)
	}
	if err := all.Grow(1); err == nil {
		t.Error("memory beyond the budget was reserved")
	}
}

// TestFirstOf checks that the error of a reference is preferred to the errors that it causes for
// the others.
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
