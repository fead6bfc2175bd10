// Package bounded owns reading untrusted input into memory: memory grows with the input
// and not with its announced length, and long input needs permission.
//
// Invariant: the memory is at most eight times the received bytes, and twice beyond 512 KiB.
package bounded

import (
	"bytes"
	"io"
	"sync"
)

const (
	// Small is the number of bytes to read without a call of grow.
	Small = 64 << 10
	// first is the size of the first buffer.
	first = 8 << 10
)

// Pools of the first buffers. Read copies their bytes before it returns.
var (
	firsts = sync.Pool{New: func() any { return new([first]byte) }}
	smalls = sync.Pool{New: func() any { return new([Small]byte) }}
)

// Read reads from to its end. length is the announced length, or -1 if unknown. The memory grows in
// steps up to length or limit, by a large factor at first to copy ordinary bodies rarely. The reader
// must enforce the limit. Beyond Small, Read calls grow with the bytes of each step before
// it allocates them, and returns the error of grow.
func Read(from io.Reader, length, limit int64, grow func(int64) error) ([]byte, error) {
	readLimit := limit + 1 // room to see the end
	if length >= 0 {
		readLimit = length + 1
	}
	var buf []byte
	pooled := false
	for {
		if len(buf) == cap(buf) {
			factor := int64(8)
			if cap(buf) > Small {
				factor = 2
			}
			size := min(max(factor*int64(cap(buf)), first), max(readLimit, int64(cap(buf))+1))
			if size > Small {
				more := size - int64(cap(buf))
				if cap(buf) <= Small {
					more = size
				}
				if err := grow(more); err != nil {
					return nil, err
				}
			}
			var next []byte
			switch pooled = true; {
			case size == first:
				buffer := firsts.Get().(*[first]byte)
				defer firsts.Put(buffer)
				next = buffer[:]
			case size == Small:
				buffer := smalls.Get().(*[Small]byte)
				defer smalls.Put(buffer)
				next = buffer[:]
			default:
				next, pooled = make([]byte, size), false
			}
			buf = next[:copy(next, buf)]
		}
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF && pooled:
			return bytes.Clone(buf), nil
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}
