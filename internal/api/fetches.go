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
	// accountGathers bounds the concurrent submissions of one account that fetch references or wait
	// to. Each holds a connection and a small body outside the memory budget.
	accountGathers = 128
)

// fetches bounds the fetching of references.
type fetches struct {
	images, videos *turns

	mu        sync.Mutex
	gathering map[string]int // guarded by mu; submissions, by account
}

func newFetches() *fetches {
	return &fetches{images: newTurns(imageFetches), videos: newTurns(videoFetches), gathering: make(map[string]int)}
}

// join takes in one more submission of an account; leave must be called once, at
// its end. False: the account has too many.
func (f *fetches) join(account string) (leave func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gathering[account] >= accountGathers {
		return nil, false
	}
	f.gathering[account]++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.gathering[account]--; f.gathering[account] == 0 {
			delete(f.gathering, account)
		}
	}, true
}

// enter waits for a turn to fetch a possible video or an image; see turns.enter.
func (f *fetches) enter(ctx context.Context, account string, video bool) (done func(), err error) {
	if video {
		return f.videos.enter(ctx, account)
	}
	return f.images.enter(ctx, account)
}

// turns is a number of slots shared fairly by accounts.
//
// A free slot goes to the account that holds the fewest, then to the one that has waited longest.
// An account that holds slots gets another one only while more are free than it holds. So a single
// account gets at most half, two get a third each, and the last slot stays free for a newcomer. An
// account without slots waits only behind accounts that began to wait earlier, each of which goes
// first once. A slot is held for at most fetchWithin and the storing of its file, so behind k
// accounts the wait is at most k / turns + 1 times as long.
//
// Shares belong to accounts, not people: many accounts have many shares, but each must be able to
// pay for its submission (desk.foresee), and a wait ends at gatherWithin.
type turns struct {
	mu      sync.Mutex
	free    int
	shares  map[string]*share // accounts with slots or waiting
	changes int64             // counter of changes, the clock of share.since
}

// share is an account's part of the turns, guarded by their lock.
type share struct {
	held    int
	since   int64           // when held changed, or the account began to wait
	waiting []chan struct{} // each closed when its turn comes, in this order
}

func newTurns(n int) *turns { return &turns{free: n, shares: make(map[string]*share)} }

// next returns the share that gets the next slot, or nil.
func next(free int, shares iter.Seq[*share]) *share {
	var first *share
	for s := range shares {
		if len(s.waiting) == 0 {
			continue
		}
		if first == nil || s.held < first.held || s.held == first.held && s.since < first.since {
			first = s
		}
	}
	if first == nil || first.held >= free {
		return nil
	}
	return first
}

// enter waits for a slot. done returns it and must be called once. The error is that of ctx.
func (t *turns) enter(ctx context.Context, account string) (done func(), err error) {
	turn := t.ask(account)
	select {
	case <-turn:
		return func() { t.giveBack(account) }, nil
	case <-ctx.Done():
		if !t.withdraw(account, turn) {
			t.giveBack(account) // it came in this moment
		}
		return nil, ctx.Err()
	}
}

// ask puts an account's wish for a turn behind its others.
func (t *turns) ask(account string) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	if s == nil {
		s = &share{}
		t.shares[account] = s
	}
	if len(s.waiting) == 0 {
		t.changed(s)
	}
	turn := make(chan struct{})
	s.waiting = append(s.waiting, turn)
	t.handOut()
	return turn
}

// withdraw takes a wish back. False: its turn has come.
func (t *turns) withdraw(account string, turn chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	i := slices.Index(s.waiting, turn)
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	t.forget(account, s)
	return true
}

// giveBack ends a turn.
func (t *turns) giveBack(account string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.shares[account]
	s.held--
	t.free++
	t.changed(s)
	t.handOut()
	t.forget(account, s)
}

// handOut gives free slots to waiting accounts until none qualifies.
func (t *turns) handOut() {
	for t.free > 0 {
		s := next(t.free, maps.Values(t.shares))
		if s == nil {
			return
		}
		close(s.waiting[0])
		s.waiting = slices.Delete(s.waiting, 0, 1)
		s.held++
		t.free--
		t.changed(s)
	}
}

func (t *turns) changed(s *share) {
	t.changes++
	s.since = t.changes
}

func (t *turns) forget(account string, s *share) {
	if s.held == 0 && len(s.waiting) == 0 {
		delete(t.shares, account)
	}
}
