package sse

import "sync"

// Buffers of ended readers, for others.
var (
	firstBuffers = sync.Pool{New: func() any { b := make([]byte, firstBuffer); return &b }}
	burstBuffers = sync.Pool{New: func() any { b := make([]byte, burstBuffer); return &b }}
)

// newBuffer returns a buffer with arbitrary contents.
func newBuffer(size int) []byte {
	switch size {
	case firstBuffer:
		return *firstBuffers.Get().(*[]byte)
	case burstBuffer:
		return *burstBuffers.Get().(*[]byte)
	}
	return make([]byte, size)
}

// freeBuffer frees a buffer of newBuffer.
func freeBuffer(b []byte) {
	switch len(b) {
	case firstBuffer:
		firstBuffers.Put(&b)
	case burstBuffer:
		burstBuffers.Put(&b)
	}
}
