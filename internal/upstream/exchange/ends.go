package exchange

import "bytes"

// longestEnd is how much of such words is found when a read cuts them.
const longestEnd = 64

// ends looks for the words with which a stream's last event begins, however
// the reads cut them. That a text says the same words does no harm: the end of
// the stream is then waited for, for a moment, after a client left.
type ends struct {
	words []string
	seen  bool

	last []byte // the end of what was read
	join [2 * longestEnd]byte
}

// read takes the next bytes and tells whether one of the words was there, now
// or before.
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
	// What is kept stands at the beginning of join, where the next bytes follow.
	tail := joined
	if len(p) > longestEnd {
		tail = p
	}
	tail = tail[max(0, len(tail)-(longestEnd-1)):]
	e.last = e.join[:copy(e.join[:], tail)]
	return false
}
