package httpapi

import (
	"errors"
	"sync"
	"time"

	"tollgate/internal/fault"
)

const (
	// defaultBudget is the budget in bytes if none is set.
	defaultBudget    = 1 << 30
	budgetRetryAfter = time.Second
)

// bodyCopies is the number of copies of a request body in memory: the received body and the body edited
// for a line.
const bodyCopies = 2

// Budget is a node's budget of memory for request bodies and fetched reference files longer than
// bounded.Small. An account gets at most half of the budget, and always enough for a file of the largest
// size.
type Budget struct {
	limit, half, file int64 // in total, for an account's bodies, and for an account's bodies and files

	mu        sync.Mutex
	held      int64
	byAccount map[string]int64
}

// NewBudget returns a budget of limit bytes, or 1 GiB if limit is 0. It always has room for two
// bodies of the largest size, and for a file of the largest size unless the file exceeds the whole
// budget.
func NewBudget(limit, largestBody, largestFile int64) *Budget {
	if limit <= 0 {
		limit = defaultBudget
	}
	limit = max(limit, 2*bodyCopies*(largestBody+1))
	return &Budget{limit: limit, half: limit / 2, file: max(limit/2, min(limit, largestFile+1)), byAccount: make(map[string]int64)}
}

// Body returns an empty reservation for a body of an account.
func (b *Budget) Body(account string) Reservation {
	return Reservation{b, account, b.half, bodyCopies, 0}
}

// File returns an empty reservation for a file of an account.
func (b *Budget) File(account string) Reservation { return Reservation{b, account, b.file, 1, 0} }

// take reserves n bytes for an account whose limit is share. Its error is a *fault.Error.
func (b *Budget) take(account string, n, share int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held+n > b.limit || b.byAccount[account]+n > share {
		f := fault.New(fault.ServiceUnavailable,
			"Too many large bodies and reference files are being handled at the moment. "+
				"You were not charged; please try again in a moment, or send fewer of them at a time.").
			WithCause(errors.New("the budget of memory for request bodies is used up"))
		f.RetryAfter = budgetRetryAfter
		return f
	}
	b.held += n
	b.byAccount[account] += n
	return nil
}

// give returns reserved bytes.
func (b *Budget) give(account string, n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held -= n
	if b.byAccount[account] -= n; b.byAccount[account] == 0 {
		delete(b.byAccount, account)
	}
}

// Reservation is the memory reserved by one reader from a budget. The zero value has no budget and
// no limit.
type Reservation struct {
	budget  *Budget
	account string // the account charged for the memory
	share   int64  // the account's limit
	copies  int64  // copies of each byte in memory
	bytes   int64
}

// Grow reserves memory for all copies of n more bytes. If the budget is used up, it reserves nothing and
// returns a *fault.Error.
func (h *Reservation) Grow(n int64) error {
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

// Release returns all reserved memory.
func (h *Reservation) Release() {
	if h.bytes > 0 {
		h.budget.give(h.account, h.bytes)
		h.bytes = 0
	}
}
