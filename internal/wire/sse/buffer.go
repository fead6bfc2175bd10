package sse

import "sync"

// Buffers for reuse, of readers that wait or have ended.
var (
	firstBuffers = sync.Pool{New: func() any { return new([firstBuffer]byte) }}
	burstBuffers = sync.Pool{New: func() any { return new([burstBuffer]byte) }}
)

// newBuffer returns a buffer with arbitrary contents.
func newBuffer(size int) []byte {
	switch size {
	case firstBuffer:
		return firstBuffers.Get().(*[firstBuffer]byte)[:]
	case burstBuffer:
		return burstBuffers.Get().(*[burstBuffer]byte)[:]
	}
	return make([]byte, size)
}

// freeBuffer frees a buffer of newBuffer.
func freeBuffer(b []byte) {
	switch len(b) {
	case firstBuffer:
		firstBuffers.Put((*[firstBuffer]byte)(b))
	case burstBuffer:
		burstBuffers.Put((*[burstBuffer]byte)(b))
	}
}
