package line

import (
	"math"
	"slices"

	"tollgate/internal/wire"
)

// rankedLine is a line in the order of attempts.
type rankedLine struct {
	entry       *routingEntry
	position    int // position in the order, from 1
	score       float64
	form        wire.Form // form of the request to the line, or empty
	missingForm wire.Form // form that the line lacked in an earlier attempt, or empty
	skipped     string    // reason for skipping the line
	attempted   bool
	final       bool // whether the line also refused the request as a last resort
	selector    keySelector
}

// order returns the lines in the order of attempts: lower priority first, then by weight. All
// requests of one conversation get the same line while it is available, so that the provider's
// prompt cache stays warm. Lines get requests in proportion to their weights, and the loss of a
// line moves only its own conversations (rendezvous hashing).
func order(buf []rankedLine, entries []*routingEntry, conversation uint64) []rankedLine {
	start := 0
	for i, entry := range entries {
		if i > start && entry.line.Priority != entries[start].line.Priority {
			rank(buf[start:], conversation)
			start = i
		}
		buf = append(buf, rankedLine{entry: entry})
	}
	rank(buf[start:], conversation)
	for i := range buf {
		buf[i].position = i + 1
	}
	return buf
}

// rank orders lines of one priority, the highest score first.
func rank(lines []rankedLine, conversation uint64) {
	if len(lines) < 2 {
		return
	}
	for i := range lines {
		lines[i].score = rendezvous(lines[i].entry.hash, conversation, lines[i].entry.line.Weight)
	}
	slices.SortStableFunc(lines, func(a, b rankedLine) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
}

// rendezvous returns a line's score for a conversation, its weight divided by an exponential variable.
// A line has the highest score with a probability proportional to its weight.
func rendezvous(line, conversation uint64, weight int) float64 {
	u := (float64(mix(line^mix(conversation))>>11) + 0.5) / (1 << 53) // above 0, below 1
	return -float64(weight) / math.Log(u)
}

// mix distributes the bits of a number (the finalizer of SplitMix64), in the same way on every
// node.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
