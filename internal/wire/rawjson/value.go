package rawjson

import (
	"bytes"
	"math"
	"strconv"
)

// Integer reads a JSON number that is written as an integer. Values beyond
// int64 come out as its ends.
func Integer(raw []byte) (int64, bool) {
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

// Boolean reads true or false; ok is false for any other value, and absent is
// false.
func Boolean(raw []byte) (value, ok bool) {
	switch {
	case raw == nil || string(raw) == "false":
		return false, true
	case string(raw) == "true":
		return true, true
	}
	return false, false
}

// MaxCount bounds every count that a provider reports; money is computed
// without overflow up to it.
const MaxCount = 1 << 40

// Count reads a count of tokens: a number, at most maxCount. A negative one is
// no count.
func Count(raw []byte) (int64, bool) {
	if len(raw) == 0 || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')) {
		return 0, false
	}
	n, ok := Integer(raw)
	if !ok {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsNaN(f) || f < 0 {
			return 0, false
		}
		n = int64(min(f, MaxCount))
	}
	if n < 0 {
		return 0, false
	}
	return min(n, MaxCount), true
}

// Object returns a document that is one JSON object, from its brace on; nil: it is
// none.
func Object(body []byte) []byte {
	from := SkipSpace(body, 0)
	if from >= len(body) || body[from] != '{' || !IsValid(body) {
		return nil
	}
	return body[from:]
}

// IsValid tells whether data is JSON.
func IsValid(data []byte) bool {
	s := scanner{src: data}
	i := s.value(s.space(0), 0)
	return i != invalid && s.space(i) == len(data)
}

// Checker is IsValid with a memory, so that the checks of many events do not
// allocate. Not for concurrent use.
type Checker struct{ scanner scanner }

// Valid tells whether data is JSON.
func (c *Checker) Valid(data []byte) bool {
	s := &c.scanner
	s.src = data
	i := s.value(s.space(0), 0)
	return i != invalid && s.space(i) == len(data)
}

// IsWithin tells whether data, which begins with its value, is JSON that nests at
// most so deep.
func IsWithin(data []byte, depth int) bool {
	s := scanner{src: data}
	i := s.value(0, maxDepth-depth)
	return i != invalid && s.space(i) == len(data)
}
