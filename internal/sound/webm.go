package sound

import (
	"encoding/binary"
	"math"
	"math/bits"
	"time"
)

// Elements of WebM (RFC 9559).
const (
	idSegment       = 0x18538067
	idInfo          = 0x1549a966
	idTimestampUnit = 0x2ad7b1
	idDuration      = 0x4489
	idCluster       = 0x1f43b675
	idTimestamp     = 0xe7
	idBlockGroup    = 0xa0
	idBlock         = 0xa1
	idSimpleBlock   = 0xa3
)

// webm reads the duration of a WebM file. Some recorders write none; then it returns the time of the
// last block.
func (f *file) webm() stream {
	unit := int64(time.Millisecond) // nanoseconds per tick
	var lastBlock, cluster int64    // times of the last block and of the current cluster, in ticks
	duration := 0.0                 // ticks
	for at := int64(0); at < f.size; {
		id, length, content := f.element(at)
		if id == 0 {
			break
		}
		switch id {
		case idSegment, idInfo, idCluster, idBlockGroup:
			at = content // its elements follow
			continue
		case idTimestampUnit:
			unit = int64(min(f.unsigned(content, length), uint64(time.Hour)))
		case idDuration:
			duration = f.float(content, length)
		case idTimestamp:
			cluster = int64(min(f.unsigned(content, length), math.MaxInt64/2))
		case idSimpleBlock, idBlock:
			if n := f.blockTime(content); cluster+n > lastBlock {
				lastBlock = cluster + n
			}
		}
		if length < 0 || length > f.size-content {
			break // cut off, or an unknown length where none may be
		}
		at = content + length
	}
	if !(duration > 0) { // also of NaN
		duration = float64(lastBlock)
	}
	return stream{duration: time.Duration(min(duration*float64(unit), float64(maxDuration)))}
}

// element reads the head of an element: its id (0 without one), the length of its content (-1
// if unknown) and the offset of its content.
func (f *file) element(at int64) (id, length, content int64) {
	h := f.bytes(at, 1)
	if h == nil || h[0] < 0x10 {
		return 0, 0, 0
	}
	n := bits.LeadingZeros8(h[0]) + 1
	if h = f.bytes(at, n); h == nil {
		return 0, 0, 0
	}
	for _, b := range h {
		id = id<<8 | int64(b)
	}
	at += int64(n)
	if h = f.bytes(at, 1); h == nil || h[0] == 0 {
		return 0, 0, 0
	}
	n = bits.LeadingZeros8(h[0]) + 1
	if h = f.bytes(at, n); h == nil {
		return 0, 0, 0
	}
	length = int64(h[0]) & (0xff >> n)
	for _, b := range h[1:] {
		length = length<<8 | int64(b)
	}
	if length == 1<<(7*n)-1 {
		length = -1
	}
	return id, length, at + int64(n)
}

// unsigned reads a number of length bytes, or returns 0.
func (f *file) unsigned(at, length int64) (n uint64) {
	if length < 1 || length > 8 {
		return 0
	}
	for _, b := range f.bytes(at, int(length)) {
		n = n<<8 | uint64(b)
	}
	return n
}

// float reads a floating-point number of 4 or 8 bytes, or returns 0.
func (f *file) float(at, length int64) float64 {
	if length != 4 && length != 8 {
		return 0
	}
	h := f.bytes(at, int(length))
	switch {
	case h == nil:
		return 0
	case length == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(h)))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(h))
}

// blockTime returns the time of a block in ticks from the start of its cluster, or 0.
func (f *file) blockTime(at int64) int64 {
	h := f.bytes(at, 1)
	if h == nil || h[0] == 0 {
		return 0
	}
	if h = f.bytes(at+int64(bits.LeadingZeros8(h[0])+1), 2); h == nil {
		return 0
	}
	return int64(int16(binary.BigEndian.Uint16(h)))
}
