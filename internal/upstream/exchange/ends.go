package exchange

import "bytes"

// longestEnd is the maximum length of a word found across two reads, in bytes.
const longestEnd = 64

// endFinder searches a stream for the words that begin its last event, also across reads. If a text
// contains the same words, then Close may wait briefly for the end of the stream.
type endFinder struct {
	words []string
	found bool

	last []byte // the last bytes read
	join [2 * longestEnd]byte
}

// read takes the next bytes and reports whether any of the words has been found so far.
func (e *endFinder) read(p []byte) bool {
	if e.found || len(e.words) == 0 || len(p) == 0 {
		return e.found
	}
	joined := append(e.join[:len(e.last)], p[:min(len(p), longestEnd)]...)
	for _, word := range e.words {
		if bytes.Contains(joined, []byte(word)) || bytes.Contains(p, []byte(word)) {
			e.found = true
			return true
		}
	}
	// The tail is kept at the beginning of join, where the next bytes are appended.
	tail := joined
	if len(p) > longestEnd {
		tail = p
	}
	tail = tail[max(0, len(tail)-(longestEnd-1)):]
	e.last = e.join[:copy(e.join[:], tail)]
	return false
}
