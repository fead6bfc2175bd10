package chat

import (
	"errors"
	"sync/atomic"
)

// errNoMemory is the cause if the budget is used up.
var errNoMemory = errors.New("the budget of memory for answers is used up")

// budget bounds the memory for all answers beyond unbudgetedBytes each: whole answers and the bytes
// buffered for streams.
type budget struct {
	limit int64
	held  atomic.Int64
}

// reserve reserves n bytes; false when they do not fit.
func (b *budget) reserve(n int64) bool {
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		return false
	}
	return true
}

// release returns reserved bytes.
func (b *budget) release(n int64) { b.held.Add(-n) }

// budgetedBytes returns the number of budgeted bytes of an answer with n bytes. Ordinary answers need no
// budget, so long answers cannot keep them out.
func budgetedBytes(n int64) int64 { return max(0, n-unbudgetedBytes) }
