// Package bounded owns how what strangers send gets into memory: as it arrives,
// whatever length they announce, and with somebody's leave where it is long.
//
// Invariant: what is held is at most eight times what has arrived, and beyond
// 512 KiB twice as much.
package bounded

import (
	"bytes"
	"io"
	"sync"
)

const (
	// Small is what may be read without leave, bytes.
	Small = 64 << 10
	// first is what the memory begins with.
	first = 8 << 10
)

// Memory of the first steps is lent, since what does not end in it is copied.
var (
	firsts = sync.Pool{New: func() any { return new([first]byte) }}
	smalls = sync.Pool{New: func() any { return new([Small]byte) }}
)

// Read reads to the end into memory that grows in steps, large ones at first so
// that an ordinary body is not copied often, and none beyond the announced length
// (-1: none was) or the limit, which is for the reader to enforce. Beyond Small, grow is asked
// for the bytes of each step before they are taken, and its error is returned.
func Read(from io.Reader, length, limit int64, grow func(int64) error) ([]byte, error) {
	most := limit + 1 // room to see the end
	if length >= 0 {
		most = length + 1
	}
	var buf []byte
	lent := false
	for {
		if len(buf) == cap(buf) {
			factor := int64(8)
			if cap(buf) > Small {
				factor = 2
			}
			size := min(max(factor*int64(cap(buf)), first), max(most, int64(cap(buf))+1))
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
			switch lent = true; {
			case size == first:
				lend := firsts.Get().(*[first]byte)
				defer firsts.Put(lend)
				next = lend[:]
			case size == Small:
				lend := smalls.Get().(*[Small]byte)
				defer smalls.Put(lend)
				next = lend[:]
			default:
				next, lent = make([]byte, size), false
			}
			buf = next[:copy(next, buf)]
		}
		n, err := from.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF && lent:
			return bytes.Clone(buf), nil
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}
