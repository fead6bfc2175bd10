package wire

import (
	"bytes"
	"math"
	"strconv"
)

// integer reads a JSON number that is written as an integer. Values beyond
// int64 come out as its ends.
func integer(raw []byte) (int64, bool) {
	if len(raw) == 0 || bytes.ContainsAny(raw, ".eE\"{[tfn") {
		return 0, false
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		if raw[0] == '-' {
			return math.MinInt64, true
		}
		return math.MaxInt64, true
	}
	return n, true
}

// boolean reads true or false; ok is false for any other value, and absent is
// false.
func boolean(raw []byte) (value, ok bool) {
	switch {
	case raw == nil || string(raw) == "false":
		return false, true
	case string(raw) == "true":
		return true, true
	}
	return false, false
}

// maxCount bounds every count that a provider reports; money is computed
// without overflow up to it.
const maxCount = 1 << 40

// count reads a count of tokens: a number, at most maxCount. A negative one is
// no count.
func count(raw []byte) (int64, bool) {
	if len(raw) == 0 || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')) {
		return 0, false
	}
	n, ok := integer(raw)
	if !ok {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsNaN(f) || f < 0 {
			return 0, false
		}
		n = int64(min(f, maxCount))
	}
	if n < 0 {
		return 0, false
	}
	return min(n, maxCount), true
}

// firstCount returns the first of the named members that is a count.
func firstCount(object []byte, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := count(field(object, name)); ok {
			return n, true
		}
	}
	return 0, false
}

// isValid tells whether data is JSON.
func isValid(data []byte) bool {
	s := scanner{src: data}
	i := s.value(s.space(0), 0)
	return i != invalid && s.space(i) == len(data)
}

// checker is isValid with a memory, so that the checks of many events do not
// allocate. Not for concurrent use.
type checker struct{ scanner scanner }

// valid tells whether data is JSON.
func (c *checker) valid(data []byte) bool {
	s := &c.scanner
	s.src = data
	i := s.value(s.space(0), 0)
	return i != invalid && s.space(i) == len(data)
}

// isWithin tells whether data, which begins with its value, is JSON that nests at
// most so deep.
func isWithin(data []byte, depth int) bool {
	s := scanner{src: data}
	i := s.value(0, maxDepth-depth)
	return i != invalid && s.space(i) == len(data)
}

// isNumber tells whether a text is a JSON number.
func isNumber(raw []byte) bool {
	s := scanner{src: raw}
	return len(raw) > 0 && raw[0] != '"' && s.number(0) == len(raw)
}
