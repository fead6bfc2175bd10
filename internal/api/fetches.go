package api

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
)

// Bounds of what a node fetches.
const (
	// References at a time, each of which may be in memory as a whole: images, and
	// what may be a video.
	imageFetches = 24
	videoFetches = 8
	// accountGathers are the submissions of one account whose references are
	// being fetched or wait for it. A connection waits with each, and what bodies
	// may have without asking the budget of memory.
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

// enter waits for a turn, of what may be a video or of an image; see turns.enter.
func (f *fetches) enter(ctx context.Context, account string, video bool) (done func(), err error) {
	if video {
		return f.videos.enter(ctx, account)
	}
	return f.images.enter(ctx, account)
}

// turns are a number of places that accounts share fairly.
//
// A free one goes to the account that holds the fewest, among equals to the one
// that has waited longest with what it holds; and to an account that holds some
// only while more are free than it holds. So one account alone gets half, two
// get a third each, and so on, and the last free one is left to somebody who has
// none. Who holds none waits only while none is free, and only behind the
// accounts that began to wait before it, each of which goes first once: a turn
// ends within fetchWithin and the storing of its file, so with k accounts before
// it that is k / turns + 1 times as long at most, however slow the hosts of the
// others are and however much they have waiting.
//
// Shares are of accounts, not of people. Who has many accounts has as many
// shares, each of which must be able to pay for what it submits (desk.foresee),
// and can make others wait that much longer, up to gatherWithin. Nothing is
// promised against that but that everybody's turn comes in the order above.
type turns struct {
	mu      sync.Mutex
	free    int
	shares  map[string]*share // of the accounts that hold or wait
	changes int64             // of all shares; what since counts
}

// share is what one account has of the turns; guarded by their lock.
type share struct {
	held    int
	since   int64           // when held changed, or the account began to wait
	waiting []chan struct{} // each closed when its turn comes, in this order
}

func newTurns(n int) *turns { return &turns{free: n, shares: make(map[string]*share)} }

// next decides who gets the next turn; nil: nobody does.
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

// enter waits for a turn; done gives it back and must be called once. The error
// is that of ctx.
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

// handOut gives turns to those whose they are, until nobody may have one.
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
