package job

import "sync"

// keyedMutex is a lock for each key. The zero value is ready.
type keyedMutex struct {
	mu   sync.Mutex
	held map[string]*sharedMutex
}

// sharedMutex is the lock of one key, there while somebody has it or waits.
type sharedMutex struct {
	sync.Mutex
	users int // under keyedMutex.mu
}

// lock waits for the key's lock and returns what gives it back.
func (k *keyedMutex) lock(key string) (unlock func()) {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*sharedMutex{}
	}
	mine := k.held[key]
	if mine == nil {
		mine = &sharedMutex{}
		k.held[key] = mine
	}
	mine.users++
	k.mu.Unlock()
	mine.Lock()
	return func() {
		mine.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if mine.users--; mine.users == 0 {
			delete(k.held, key)
		}
	}
}
