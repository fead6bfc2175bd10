package chat

import "sync/atomic"

// budget bounds the bytes of all whole answers that are held at a time.
type budget struct {
	most int64
	held atomic.Int64
}

// take reserves n bytes; false when they do not fit.
func (b *budget) take(n int64) bool {
	if b.held.Add(n) > b.most {
		b.held.Add(-n)
		return false
	}
	return true
}

// give returns reserved bytes.
func (b *budget) give(n int64) { b.held.Add(-n) }
