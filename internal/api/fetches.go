package api

import (
	"context"
	"sync"
)

// How many references a node fetches at a time, each of which may be in memory
// as a whole: images, what may be a video, and those of one account.
const (
	imageFetches   = 24
	videoFetches   = 8
	accountFetches = 6
)

// fetches hands out turns to fetch references. One account's slow hosts hold up
// that account alone.
type fetches struct {
	images, videos chan struct{}

	mu       sync.Mutex
	accounts map[string]*share // guarded by mu; those who fetch or wait
}

// share is what one account has of the turns.
type share struct {
	turns chan struct{}
	users int // guarded by fetches.mu
}

func newFetches() *fetches {
	return &fetches{
		images: make(chan struct{}, imageFetches), videos: make(chan struct{}, videoFetches),
		accounts: make(map[string]*share),
	}
}

// enter waits for a turn; done gives it back and must be called once. The error
// is that of ctx.
func (f *fetches) enter(ctx context.Context, account string, video bool) (done func(), err error) {
	s := f.join(account)
	node := f.images
	if video {
		node = f.videos
	}
	if err := take(ctx, s.turns); err != nil {
		f.leave(account, s)
		return nil, err
	}
	if err := take(ctx, node); err != nil {
		<-s.turns
		f.leave(account, s)
		return nil, err
	}
	return func() {
		<-node
		<-s.turns
		f.leave(account, s)
	}, nil
}

// take takes a place, or gives up when ctx ends.
func take(ctx context.Context, places chan struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fetches) join(account string) *share {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.accounts[account]
	if s == nil {
		s = &share{turns: make(chan struct{}, accountFetches)}
		f.accounts[account] = s
	}
	s.users++
	return s
}

func (f *fetches) leave(account string, s *share) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(f.accounts, account)
	}
}
