package exchange

import "bytes"

// longestEnd is the maximum length of words that are found across two reads.
const longestEnd = 64

// ends searches a stream for the first words of its last event, even across reads. If a text
// contains the same words, the only effect is that Close waits briefly for the end of the stream
// after the client has disconnected.
type ends struct {
	words []string
	seen  bool

	last []byte // the last bytes read
	join [2 * longestEnd]byte
}

// read takes the next bytes and reports whether any of the words has been found so far.
func (e *ends) read(p []byte) bool {
	if e.seen || len(e.words) == 0 || len(p) == 0 {
		return e.seen
	}
	joined := append(e.join[:len(e.last)], p[:min(len(p), longestEnd)]...)
	for _, word := range e.words {
		if bytes.Contains(joined, []byte(word)) || bytes.Contains(p, []byte(word)) {
			e.seen = true
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
