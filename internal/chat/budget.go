package chat

import (
	"errors"
	"sync/atomic"
)

// errNoMemory is the cause of a failure if the budget is used up.
var errNoMemory = errors.New("the budget of memory for answers is used up")

// budget bounds the memory for whole answers and buffered streams. The first unbudgetedBytes of each
// answer do not count, so that long answers cannot keep ordinary ones out.
type budget struct {
	limit int64
	held  atomic.Int64
}

// reserve reserves n bytes and returns true. If they exceed the limit, it reserves nothing and
// returns false.
func (b *budget) reserve(n int64) bool {
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		return false
	}
	return true
}

// release releases reserved bytes.
func (b *budget) release(n int64) { b.held.Add(-n) }
