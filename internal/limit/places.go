package limit

import (
	"context"
	"sync"
)

// Places bounds how many do something at a time for each key; the others of that key
// wait, and no other key's. It is safe for concurrent use.
type Places[K comparable] struct {
	each int

	mu    sync.Mutex
	taken map[K]*taken
}

// taken are the places of a key.
type taken struct {
	places chan struct{}
	users  int // who have a place or wait for one; under mu
}

// NewPlaces returns so many free places for each key.
func NewPlaces[K comparable](each int) *Places[K] {
	return &Places[K]{each: each, taken: map[K]*taken{}}
}

// Enter waits for a place of a key until ctx ends, whose error it returns then. leave
// gives the place back.
func (p *Places[K]) Enter(ctx context.Context, key K) (leave func(), err error) {
	p.mu.Lock()
	own := p.taken[key]
	if own == nil {
		own = &taken{places: make(chan struct{}, p.each)}
		p.taken[key] = own
	}
	own.users++
	p.mu.Unlock()
	select {
	case own.places <- struct{}{}:
		return func() {
			<-own.places
			p.drop(key, own)
		}, nil
	case <-ctx.Done():
		p.drop(key, own)
		return nil, ctx.Err()
	}
}

// drop forgets a key whose places nobody uses.
func (p *Places[K]) drop(key K, own *taken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(p.taken, key)
	}
}
