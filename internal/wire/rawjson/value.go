package rawjson

import (
	"bytes"
	"math"
	"strconv"
)

// Integer reads a JSON number written as an integer. Values beyond int64 become the nearest int64.
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

// Boolean reads true or false. A nil raw is false; ok is false for any other value.
func Boolean(raw []byte) (value, ok bool) {
	switch {
	case raw == nil || string(raw) == "false":
		return false, true
	case string(raw) == "true":
		return true, true
	}
	return false, false
}

// MaxCount is the limit of every count reported by a provider. Money computed from counts up to it
// does not overflow.
const MaxCount = 1 << 40

// Count reads a number of tokens, limited to MaxCount. It returns false for a negative number.
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

// Object returns the JSON object in body from its brace on, or nil if body is not an object.
func Object(body []byte) []byte {
	from := SkipSpace(body, 0)
	if from >= len(body) || body[from] != '{' || !IsValid(body) {
		return nil
	}
	return body[from:]
}

// IsValid reports whether data is JSON.
func IsValid(data []byte) bool {
	var c Checker
	return c.Valid(data)
}

// Checker checks JSON without an allocation for each check. It is not safe for concurrent use.
type Checker struct{ scanner scanner }

// Valid reports whether data is JSON.
func (c *Checker) Valid(data []byte) bool {
	s := &c.scanner
	s.src = data
	i := s.value(s.space(0), 0)
	return i != invalid && s.space(i) == len(data)
}

// IsWithin reports whether data is JSON, without leading space, with at most depth levels.
func IsWithin(data []byte, depth int) bool {
	s := scanner{src: data}
	i := s.value(0, maxDepth-depth)
	return i != invalid && s.space(i) == len(data)
}
