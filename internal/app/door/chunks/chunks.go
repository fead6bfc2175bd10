// Package chunks owns where a chunked body (RFC 9112, 7.1) ends.
//
// Invariants: it knows the plain form alone, which nobody reads in another way:
// sizes without leading zeros, no extensions, no trailers, CRLF at the end of each
// line. Where it sees the end of a body, net/http sees it too.
package chunks

import "math"

// Body follows a chunked body, so that it is known where the next request begins.
// The zero value is at its beginning.
type Body struct {
	part part
	size int64 // of the chunk whose size is being read, or what is left of its data
}

// part is what comes next in a chunked body.
type part int

const (
	chunkSize  part = iota // the first digit
	moreSize               // another digit, or the end of the line
	sizeLF                 // the second half of that end
	chunkData              //
	dataCR                 // the end of the data
	dataLF                 //
	lastSizeCR             // the end of the line that says 0
	lastSizeLF             //
	lastCR                 // the empty line
	lastLF                 //
	bodyEnded
)

// Follow takes the next bytes and returns how many of them belong to the body;
// false: it is not in the plain form.
func (c *Body) Follow(p []byte) (int, bool) {
	for i := 0; i < len(p); {
		switch c.part {
		case bodyEnded:
			return i, true
		case chunkData:
			n := min(c.size, int64(len(p)-i))
			i += int(n)
			if c.size -= n; c.size == 0 {
				c.part = dataCR
			}
		default:
			if !c.step(p[i]) {
				return i, false
			}
			i++
		}
	}
	return len(p), true
}

// Ended tells whether the end of the body has come.
func (c *Body) Ended() bool { return c.part == bodyEnded }

// step takes one byte of what stands around the data.
func (c *Body) step(b byte) bool {
	digit, isDigit := hexDigit(b)
	switch {
	case c.part == chunkSize && b == '0':
		c.part = lastSizeCR
	case c.part == chunkSize && isDigit:
		c.size, c.part = digit, moreSize
	case c.part == moreSize && isDigit && c.size <= math.MaxInt64>>8:
		c.size = c.size<<4 | digit
	case c.part == moreSize && b == '\r':
		c.part = sizeLF
	case (c.part == dataCR || c.part == lastSizeCR || c.part == lastCR) && b == '\r':
		c.part++
	case c.part == dataLF && b == '\n':
		c.part = chunkSize
	case (c.part == sizeLF || c.part == lastSizeLF || c.part == lastLF) && b == '\n':
		c.part++
	default:
		return false
	}
	return true
}

// hexDigit reads a hexadecimal digit.
func hexDigit(b byte) (int64, bool) {
	switch {
	case b >= '0' && b <= '9':
		return int64(b - '0'), true
	case b >= 'a' && b <= 'f':
		return int64(b-'a') + 10, true
	case b >= 'A' && b <= 'F':
		return int64(b-'A') + 10, true
	}
	return 0, false
}
