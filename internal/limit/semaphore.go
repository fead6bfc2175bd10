package limit

import (
	"context"
	"sync"
)

// Semaphores limit concurrency for each key separately. They are safe for concurrent use.
type Semaphores[K comparable] struct {
	limit int // of each key

	mu    sync.Mutex
	inUse map[K]*semaphore
}

// semaphore is the semaphore of one key.
type semaphore struct {
	slots chan struct{}
	users int // holders and waiters; guarded by Semaphores.mu
}

// NewSemaphores returns semaphores with a limit for each key.
func NewSemaphores[K comparable](limit int) *Semaphores[K] {
	return &Semaphores[K]{limit: limit, inUse: map[K]*semaphore{}}
}

// Acquire waits for a slot of a key. It returns the error of ctx if ctx ends first.
func (s *Semaphores[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	s.mu.Lock()
	own := s.inUse[key]
	if own == nil {
		own = &semaphore{slots: make(chan struct{}, s.limit)}
		s.inUse[key] = own
	}
	own.users++
	s.mu.Unlock()
	select {
	case own.slots <- struct{}{}:
		return func() {
			<-own.slots
			s.drop(key, own)
		}, nil
	case <-ctx.Done():
		s.drop(key, own)
		return nil, ctx.Err()
	}
}

// Len returns the number of keys with a holder or a waiter.
func (s *Semaphores[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inUse)
}

// drop forgets a key without holders and waiters.
func (s *Semaphores[K]) drop(key K, own *semaphore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(s.inUse, key)
	}
}
