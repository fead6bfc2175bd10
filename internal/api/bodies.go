package api

import (
	"errors"
	"sync"
	"time"

	"tollgate/internal/fault"
)

const (
	// smallBody is what a body may have without asking the budget, so that
	// ordinary requests go on while large ones wait. Connections are bounded.
	smallBody = 64 << 10
	// defaultBodyMemory is the budget where none is set.
	defaultBodyMemory = 1 << 30
	bodyRetryAfter    = time.Second
)

// bodies is the node's budget of memory for request bodies that are longer than
// smallBody. An account gets at most half of it.
type bodies struct {
	most, perAccount int64

	mu   sync.Mutex
	held int64
	by   map[string]int64 // by account
}

// newBodies makes a budget. Whatever it is, a body of the largest size fits.
func newBodies(most, largest int64) *bodies {
	if most <= 0 {
		most = defaultBodyMemory
	}
	most = max(most, 2*(largest+1))
	return &bodies{most: most, perAccount: most / 2, by: make(map[string]int64)}
}

// take reserves n bytes for an account; the error is a *fault.Error.
func (b *bodies) take(account string, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > b.most || b.by[account]+n > b.perAccount {
		f := fault.New(fault.ServiceUnavailable,
			"Too many large request bodies are being handled at the moment. You were not charged; please try again in a moment, or send fewer of them at a time.").
			WithCause(errors.New("the budget of memory for request bodies is used up"))
		f.RetryAfter = bodyRetryAfter
		return f
	}
	b.held += n
	b.by[account] += n
	return nil
}

// give returns reserved bytes.
func (b *bodies) give(account string, n int64) {
	if n == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	if b.by[account] -= n; b.by[account] == 0 {
		delete(b.by, account)
	}
}
