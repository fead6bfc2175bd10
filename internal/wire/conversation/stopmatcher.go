package conversation

import "tollgate/internal/wire/rawjson"

// stopMatcher finds stop sequences in a text that comes in pieces, in one pass (Aho and Corasick, 1975).
// Its nodes are the beginnings of the sequences; node 0 is the empty beginning.
type stopMatcher []stopNode

// stopNode is a beginning of stop sequences. Its links are indexes of nodes, or 0.
type stopNode struct {
	last        byte   // the last byte of the beginning
	length      int    // of the beginning in bytes
	first, next int32  // the first longer beginning, and the next one with the same parent
	fallback    int32  // the longest other beginning at the end of this one
	match       int32  // the longest whole sequence at the end of this beginning
	stop        []byte // the sequence, a JSON string, if the beginning is the whole of it
}

// newStopMatcher returns the matcher of sequences, JSON strings.
func newStopMatcher(stops [][]byte) stopMatcher {
	m := make(stopMatcher, 1)
	for _, stop := range stops {
		m.add(stop)
	}
	nodes := []int32{0} // by length
	for i := 0; i < len(nodes); i++ {
		for child := m[nodes[i]].first; child != 0; child = m[child].next {
			if i > 0 {
				m[child].fallback = m.step(m[nodes[i]].fallback, m[child].last)
			}
			if m[child].stop == nil {
				m[child].match = m[m[child].fallback].match
			}
			nodes = append(nodes, child)
		}
	}
	return m
}

// add adds a sequence. The first of equal ones counts.
func (m *stopMatcher) add(stop []byte) {
	at := int32(0)
	for i, b := range []byte(rawjson.Unquote(stop)) {
		child := m.child(at, b)
		if child == 0 {
			child = int32(len(*m)) //nolint:gosec // TakeStops bounds the sequences
			*m = append(*m, stopNode{last: b, length: i + 1, next: (*m)[at].first})
			(*m)[at].first = child
		}
		at = child
	}
	if n := &(*m)[at]; n.stop == nil {
		n.stop, n.match = stop, at
	}
}

// child returns the node of the beginning at followed by b, or 0.
func (m stopMatcher) child(at int32, b byte) int32 {
	child := m[at].first
	for child != 0 && m[child].last != b {
		child = m[child].next
	}
	return child
}

// step returns the node after the byte b of a text: the longest beginning at the end of the text. at is the
// node before b.
func (m stopMatcher) step(at int32, b byte) int32 {
	for {
		child := m.child(at, b)
		if child != 0 || at == 0 {
			return child
		}
		at = m[at].fallback
	}
}
