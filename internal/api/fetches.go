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
	// imageFetches and videoFetches bound the concurrent fetches of images and of possible videos.
	// Each file is in memory as a whole.
	imageFetches = 24
	videoFetches = 8
	// maxAccountSubmissions bounds the concurrent submissions of one account with references to
	// fetch. Each submission holds a connection and a small body outside the memory budget.
	maxAccountSubmissions = 128
)

// fetches bounds the fetching of references.
type fetches struct {
	images, videos *fairSlots

	mu          sync.Mutex
	submissions map[string]int // submissions by account; guarded by mu
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
// A free slot goes to the account with the fewest slots, and among equals to the one that has
// waited longest. An account with slots gets another slot only while more slots are free than it
// has. A single account therefore gets at most half of the slots, two accounts get a third each,
// and the last slot stays free for a newcomer. An account without slots waits only for accounts
// that began to wait earlier, each of which gets one slot first. A slot is used for at most
// fetchTimeout plus the time to store the file, so with k accounts ahead the wait is at most k /
// slots + 1 times as long.
//
// Shares belong to accounts, not people: many accounts have many shares, but each must be able to
// pay for its submission (checkAdmissible), and a wait ends after allFetchesTimeout.
type fairSlots struct {
	mu     sync.Mutex
	free   int
	shares map[string]*accountShare // accounts with slots or waiting requests
	clock  int64                    // counts changes; the time of accountShare.changed
}

// accountShare is the state of one account, guarded by the lock of fairSlots.
type accountShare struct {
	slots   int
	changed int64           // time when slots changed or the account began to wait
	waiting []chan struct{} // waiting requests in order; each channel is closed when its request gets a slot
}

func newFairSlots(n int) *fairSlots {
	return &fairSlots{free: n, shares: make(map[string]*accountShare)}
}

// nextShare returns the share that gets the next slot, or nil.
func nextShare(free int, shares iter.Seq[*accountShare]) *accountShare {
	var first *accountShare
	for share := range shares {
		if len(share.waiting) == 0 {
			continue
		}
		if first == nil || share.slots < first.slots || share.slots == first.slots && share.changed < first.changed {
			first = share
		}
	}
	if first == nil || first.slots >= free {
		return nil
	}
	return first
}

// acquire waits for a slot. The caller must call done once to return the slot. If ctx ends first,
// acquire returns its error.
func (s *fairSlots) acquire(ctx context.Context, account string) (done func(), err error) {
	granted := s.enqueue(account)
	select {
	case <-granted:
		return func() { s.release(account) }, nil
	case <-ctx.Done():
		if !s.dequeue(account, granted) {
			s.release(account) // the slot was granted at the same moment
		}
		return nil, ctx.Err()
	}
}

// enqueue adds a request for a slot after the account's earlier requests. It returns a channel that
// is closed when the request gets a slot.
func (s *fairSlots) enqueue(account string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.shares[account]
	if share == nil {
		share = &accountShare{}
		s.shares[account] = share
	}
	if len(share.waiting) == 0 {
		s.touch(share)
	}
	granted := make(chan struct{})
	share.waiting = append(share.waiting, granted)
	s.assign()
	return granted
}

// dequeue withdraws a request for a slot. It returns false if the request already has one.
func (s *fairSlots) dequeue(account string, granted chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.shares[account]
	i := slices.Index(share.waiting, granted)
	if i < 0 {
		return false
	}
	share.waiting = slices.Delete(share.waiting, i, i+1)
	s.dropIdle(account, share)
	return true
}

// release returns a slot.
func (s *fairSlots) release(account string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	share := s.shares[account]
	share.slots--
	s.free++
	s.touch(share)
	s.assign()
	s.dropIdle(account, share)
}

// assign gives free slots to waiting accounts until none qualifies.
func (s *fairSlots) assign() {
	for s.free > 0 {
		share := nextShare(s.free, maps.Values(s.shares))
		if share == nil {
			return
		}
		close(share.waiting[0])
		share.waiting = slices.Delete(share.waiting, 0, 1)
		share.slots++
		s.free--
		s.touch(share)
	}
}

func (s *fairSlots) touch(share *accountShare) {
	s.clock++
	share.changed = s.clock
}

func (s *fairSlots) dropIdle(account string, share *accountShare) {
	if share.slots == 0 && len(share.waiting) == 0 {
		delete(s.shares, account)
	}
}
