package sse

import "sync"

// pools have the buffers of firstBuffer, twice and four times as much, and so on up to burstBuffer.
var pools = [...]sync.Pool{maker(firstBuffer), maker(2 * firstBuffer), maker(4 * firstBuffer), maker(burstBuffer)}

// maker returns an empty pool for buffers of one size.
func maker(size int) sync.Pool {
	return sync.Pool{New: func() any { b := make([]byte, size); return &b }}
}

// poolOf returns the pool for a size of buffers, or nil.
func poolOf(size int) *sync.Pool {
	for i := range pools {
		if size == firstBuffer<<i {
			return &pools[i]
		}
	}
	return nil
}

// newBuffer returns a buffer with arbitrary contents.
func newBuffer(size int) []byte {
	if pool := poolOf(size); pool != nil {
		return *pool.Get().(*[]byte)
	}
	return make([]byte, size)
}

// freeBuffer frees a buffer of newBuffer.
func freeBuffer(b []byte) {
	if pool := poolOf(len(b)); pool != nil {
		pool.Put(&b)
	}
}
