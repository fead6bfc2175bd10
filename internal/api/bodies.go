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

// bodyCopies is how often a request body may be in memory: as it came, and as it
// was edited for a line.
const bodyCopies = 2

// bodies is the node's budget of memory for what users send and have fetched:
// request bodies and reference files that are longer than bounded.Small, so that
// ordinary requests go on while large ones wait, and connections are bounded. An
// account gets at most half of it, and always a file of the largest size.
type bodies struct {
	most, half, file int64 // all that is held; of an account, without files and with them

	mu   sync.Mutex
	held int64
	by   map[string]int64 // by account
}

// newBodies makes a budget. Whatever it is, two bodies of the largest size fit,
// and a file of the largest size where it is no smaller than one.
func newBodies(most, largest int64) *bodies {
	if most <= 0 {
		most = defaultBodyMemory
	}
	most = max(most, 2*bodyCopies*(largest+1))
	return &bodies{most: most, half: most / 2, file: max(most/2, min(most, LargestReference+1)), by: make(map[string]int64)}
}

// body is what a body of an account takes, and reference a file of it.
func (b *bodies) body(account string) held      { return held{b, account, b.half, bodyCopies, 0} }
func (b *bodies) reference(account string) held { return held{b, account, b.file, 1, 0} }

// take reserves n bytes for an account that may have so many; the error is a
// *fault.Error.
func (b *bodies) take(account string, n, share int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > b.most || b.by[account]+n > share {
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
	share   int64  // that the account may have
	copies  int64  // that each byte is held in
	bytes   int64
}

// grow takes n more bytes, as often as they are held.
func (h *held) grow(n int64) error {
	n *= h.copies
	if err := h.budget.take(h.account, n, h.share); err != nil {
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
