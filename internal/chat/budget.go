package chat

import (
	"errors"
	"sync/atomic"
)

// errNoMemory is the cause where the budget is used up.
var errNoMemory = errors.New("the budget of memory for answers is used up")

// budget bounds the bytes of all answers that are held at a time, as far as they
// are longer than ordinary ones: of whole answers and of what streams hold back.
type budget struct {
	limit int64
	held  atomic.Int64
}

// take reserves n bytes; false when they do not fit.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		return false
	}
	return true
}

// give returns reserved bytes.
func (b *budget) give(n int64) { b.held.Add(-n) }

// beyond is how many of n bytes that an answer holds are taken from the budget:
// long answers keep no ordinary ones out.
func beyond(n int64) int64 { return max(0, n-ordinaryOut) }
