package call

import "sync/atomic"

// UnbudgetedBytes is the memory of an answer outside the budget.
const UnbudgetedBytes = 64 << 10

// AnswerMemory bounds the memory for whole answers and buffered streams. The first UnbudgetedBytes of each
// answer do not count, so that long answers cannot keep ordinary ones out.
type AnswerMemory struct {
	limit int64
	held  atomic.Int64
}

// Reserve reserves n bytes and returns true. If they exceed the limit, it reserves nothing and
// returns false.
func (b *AnswerMemory) Reserve(n int64) bool {
	if b.held.Add(n) > b.limit {
		b.held.Add(-n)
		return false
	}
	return true
}

// Release releases reserved bytes.
func (b *AnswerMemory) Release(n int64) { b.held.Add(-n) }

// Held returns the number of reserved bytes.
func (b *AnswerMemory) Held() int64 { return b.held.Load() }
