package api

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Limits of a node's fetches.
const (
	// Concurrent fetches of images, and of possible videos. Each may be in memory as a whole.
	imageFetches = 24
	videoFetches = 8
	// maxAccountSubmissions bounds the concurrent submissions of one account that fetch references or wait
	// to. Each holds a connection and a small body outside the memory budget.
	maxAccountSubmissions = 128
)

// fetches bounds the fetching of references.
type fetches struct {
	images, videos *fairSlots

	mu          sync.Mutex
	submissions map[string]int // guarded by mu; submissions, by account
}

func newFetches() *fetches {
	return &fetches{images: newFairSlots(imageFetches), videos: newFairSlots(videoFetches), submissions: make(map[string]int)}
}

// begin counts a submission of an account. It returns false if the account has too many. The caller
// must call leave once at the end of the submission.
func (f *fetches) begin(account string) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.submissions[account] >= maxAccountSubmissions {
		return nil, false
	}
	f.submissions[account]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.submissions[account]--; f.submissions[account] == 0 {
			delete(f.submissions, account)
		}
	}, true
}

// acquire waits for a slot to fetch a possible video or an image; see fairSlots.acquire.
func (f *fetches) acquire(ctx context.Context, account string, video bool) (done func(), err error) {
	if video {
		return f.videos.acquire(ctx, account)
	}
	return f.images.acquire(ctx, account)
}

// fairSlots is a number of slots shared fairly by accounts.
//
// A free slot goes to the account that holds the fewest, then to the one that has waited longest.
// An account that holds slots gets another one only while more are free than it holds. So a single
// account gets at most half, two get a third each, and the last slot stays free for a newcomer. An
// account without slots waits only behind accounts that began to wait earlier, each of which goes
// first once. A slot is held for at most fetchTimeout and the storing of its file, so behind k
// accounts the wait is at most k / slots + 1 times as long.
//
// Shares belong to accounts, not people: many accounts have many shares, but each must be able to
// pay for its submission (checkAdmissible), and a wait ends at allFetchesTimeout.
type fairSlots struct {
	mu     sync.Mutex
	free   int
	shares map[string]*accountShare // accounts with slots or waiting
	clock  int64                    // counter of changes, the clock of share.since
}

// accountShare is an account's part of the slots, guarded by their lock.
type accountShare struct {
	slots   int
	changed int64           // when slots changed, or the account began to wait
	waiting []chan struct{} // in order; each is closed when it gets a slot
}

func newFairSlots(n int) *fairSlots {
	return &fairSlots{free: n, shares: make(map[string]*accountShare)}
}

// nextShare returns the share that gets the next slot, or nil.
func nextShare(free int, shares iter.Seq[*accountShare]) *accountShare {
	var first *accountShare
	for s := range shares {
		if len(s.waiting) == 0 {
			continue
		}
		if first == nil || s.slots < first.slots || s.slots == first.slots && s.changed < first.changed {
			first = s
		}
	}
	if first == nil || first.slots >= free {
		return nil
	}
	return first
}

// acquire waits for a slot. done returns it and must be called once. The error is that of ctx.
func (t *fairSlots) acquire(ctx context.Context, account string) (done func(), err error) {
	granted := t.enqueue(account)
	select {
	case <-granted:
		return func() { t.release(account) }, nil
	case <-ctx.Done():
		if !t.dequeue(account, granted) {
			t.release(account) // granted at the same moment
		}
		return nil, ctx.Err()
	}
}

// enqueue adds a request for a slot behind the account's others. It returns a channel closed when the
// request gets a slot.
func (t *fairSlots) enqueue(account string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	if s == nil {
		s = &accountShare{}
		t.shares[account] = s
	}
	if len(s.waiting) == 0 {
		t.touch(s)
	}
	granted := make(chan struct{})
	s.waiting = append(s.waiting, granted)
	t.assign()
	return granted
}

// dequeue withdraws a request for a slot. It returns false if the request already has one.
func (t *fairSlots) dequeue(account string, granted chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	i := slices.Index(s.waiting, granted)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	t.dropIdle(account, s)
	return true
}

// release returns a slot.
func (t *fairSlots) release(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	s.slots--
	t.free++
	t.touch(s)
	t.assign()
	t.dropIdle(account, s)
}

// assign gives free slots to waiting accounts until none qualifies.
func (t *fairSlots) assign() {
	for t.free > 0 {
		s := nextShare(t.free, maps.Values(t.shares))
		if s == nil {
			return
		}
		close(s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.slots++
		t.free--
		t.touch(s)
	}
}

func (t *fairSlots) touch(s *accountShare) {
	t.clock++
	s.changed = t.clock
}

func (t *fairSlots) dropIdle(account string, s *accountShare) {
	if s.slots == 0 && len(s.waiting) == 0 {
		delete(t.shares, account)
	}
}
