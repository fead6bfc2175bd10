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

// Acquire waits for a slot of a key. The caller must call release once. Acquire returns the error of ctx if
// ctx ends first.
func (s *Semaphores[K]) Acquire(ctx context.Context, key K) (release func(), err error) {
	s.mu.Lock()
	sem := s.inUse[key]
	if sem == nil {
		sem = &semaphore{slots: make(chan struct{}, s.limit)}
		s.inUse[key] = sem
	}
	sem.users++
	s.mu.Unlock()
	select {
	case sem.slots <- struct{}{}:
		return func() {
			<-sem.slots
			s.drop(key, sem)
		}, nil
	case <-ctx.Done():
		s.drop(key, sem)
		return nil, ctx.Err()
	}
}

// Len returns the number of keys with a holder or a waiter.
func (s *Semaphores[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.inUse)
}

// drop removes a holder or waiter, and deletes the key after the last one.
func (s *Semaphores[K]) drop(key K, sem *semaphore) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sem.users--; sem.users == 0 {
		delete(s.inUse, key)
	}
}
