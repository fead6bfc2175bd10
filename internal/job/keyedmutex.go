package job

import (
	"context"
	"sync"
)

// keyedMutex is a lock for each key. The zero value is ready.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]*sharedMutex
}

// sharedMutex is the lock of one key, there while somebody has it or waits.
type sharedMutex struct {
	place chan struct{} // full while somebody has it
	users int           // under keyedMutex.mu
}

// lock waits for the key's lock and returns what gives it back, or ctx's error.
func (k *keyedMutex) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*sharedMutex{}
	}
	mine := k.held[key]
	if mine == nil {
		mine = &sharedMutex{place: make(chan struct{}, 1)}
		k.held[key] = mine
	}
	mine.users++
	k.mu.Unlock()
	select {
	case mine.place <- struct{}{}:
		return func() {
			<-mine.place
			k.leave(key, mine)
		}, nil
	case <-ctx.Done():
		k.leave(key, mine)
		return nil, ctx.Err()
	}
}

// leave ends the use of a key's lock.
func (k *keyedMutex) leave(key string, mine *sharedMutex) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(k.held, key)
	}
}
