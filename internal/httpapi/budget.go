package httpapi

import (
	"errors"
	"sync"
	"time"

	"tollgate/internal/fault"
)

const (
	// defaultBudget is what there is where nothing else is set.
	defaultBudget    = 1 << 30
	budgetRetryAfter = time.Second
)

// bodyCopies is how often a request body may be in memory: as it came, and as it
// was edited for a line.
const bodyCopies = 2

// Budget is a node's budget of memory for what users send and have fetched:
// request bodies and reference files that are longer than bounded.Small, so that
// ordinary requests go on while large ones wait, and connections are bounded. An
// account gets at most half of it, and always a file of the largest size.
type Budget struct {
	most, half, file int64 // all that is held; of an account, without files and with them

	mu   sync.Mutex
	held int64
	by   map[string]int64 // by account
}

// NewBudget makes a budget of so many bytes, 0 for 1 GiB. Whatever it is, two
// bodies of the largest size fit, and a file of the largest size where it is no
// smaller than one.
func NewBudget(most, largestBody, largestFile int64) *Budget {
	if most <= 0 {
		most = defaultBudget
	}
	most = max(most, 2*bodyCopies*(largestBody+1))
	return &Budget{most: most, half: most / 2, file: max(most/2, min(most, largestFile+1)), by: make(map[string]int64)}
}

// Body is what a body of an account takes, nothing at first.
func (b *Budget) Body(account string) Held { return Held{b, account, b.half, bodyCopies, 0} }

// File is Body for a file.
func (b *Budget) File(account string) Held { return Held{b, account, b.file, 1, 0} }

// take reserves n bytes for an account that may have so many; the error is a
// *fault.Error.
func (b *Budget) take(account string, n, share int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > b.most || b.by[account]+n > share {
		f := fault.New(fault.ServiceUnavailable,
			"Too many large bodies and reference files are being handled at the moment. "+
				"You were not charged; please try again in a moment, or send fewer of them at a time.").
			WithCause(errors.New("the budget of memory for request bodies is used up"))
		f.RetryAfter = budgetRetryAfter
		return f
	}
	b.held += n
	b.by[account] += n
	return nil
}

// give returns reserved bytes.
func (b *Budget) give(account string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	if b.by[account] -= n; b.by[account] == 0 {
		delete(b.by, account)
	}
}

// Held is what one reader has taken from a budget. The zero value is of none and
// takes whatever it is asked for.
type Held struct {
	budget  *Budget
	account string // that the memory counts for
	share   int64  // that the account may have
	copies  int64  // that each byte is held in
	bytes   int64
}

// Grow takes n more bytes, as often as they are held. The error is a *fault.Error
// and takes none.
func (h *Held) Grow(n int64) error {
	if h.budget == nil {
		return nil
	}
	n *= h.copies
	if err := h.budget.take(h.account, n, h.share); err != nil {
		return err
	}
	h.bytes += n
	return nil
}

// Release gives all back.
func (h *Held) Release() {
	if h.bytes > 0 {
		h.budget.give(h.account, h.bytes)
		h.bytes = 0
	}
}
