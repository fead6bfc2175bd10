package api

import (
	"errors"
	"sync"
	"time"

	"tollgate/internal/fault"
)

const (
	// defaultBodyMemory is the budget where none is set.
	defaultBodyMemory = 1 << 30
	bodyRetryAfter    = time.Second
)

// bodies is the node's budget of memory for what users send and have fetched:
// request bodies and reference files that are longer than bounded.Small, so that
// ordinary requests go on while large ones wait, and connections are bounded. An
// account gets at most half of it.
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
			"Too many large bodies and reference files are being handled at the moment. You were not charged; please try again in a moment, or send fewer of them at a time.").
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

// held is what one reader has taken from the budget.
type held struct {
	budget  *bodies
	account string // that the memory counts for
	bytes   int64
}

// grow takes n more bytes.
func (h *held) grow(n int64) error {
	if err := h.budget.take(h.account, n); err != nil {
		return err
	}
	h.bytes += n
	return nil
}

// release gives all back.
func (h *held) release() {
	if h.bytes > 0 {
		h.budget.give(h.account, h.bytes)
		h.bytes = 0
	}
}
