package rawjson

import (
	"bytes"
	"errors"
)

// maxValues bounds the values in one answer or event of a provider, in addition to maxDepth:
// readers with a record for each value could exhaust memory. A long answer with logprobs has a
// million.
const maxValues = 4_000_000

// ErrShape reports that a provider's JSON nests too deep or has too many values.
var ErrShape = errors.New("the JSON nests too deep or has too many values")

// CheckShape returns ErrShape if data nests too deep or has too many values. It must be called
// before a recursive reader reads a provider's bytes. It does not check whether data is JSON. For
// data with few brackets and commas it only counts them.
func CheckShape(data []byte) error { return CheckValues(data, maxValues) }

// CheckValues is like CheckShape with another limit on values.
func CheckValues(data []byte, limit int) error {
	if len(data) <= maxDepth {
		return nil
	}
	brackets := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
	if brackets <= maxDepth && (len(data) <= limit || brackets+bytes.Count(data, []byte(",")) <= limit) {
		return nil
	}
	depth, values := 0, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = SkipText(data, i) - 1
		case '[', '{':
			depth++
			values++
		case ']', '}':
			depth--
		case ',':
			values++
		}
		if depth > maxDepth || values > limit {
			return ErrShape
		}
	}
	return nil
}
