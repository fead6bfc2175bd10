package rawjson

import (
	"bytes"
	"errors"
)

// maxValues bounds, beside maxDepth, what a provider sends in one answer or event,
// whatever its length: a long answer with logprobs has a million, and readers that
// keep a record for each value would end the process beyond it.
const maxValues = 4_000_000

// ErrShape says that a provider's JSON nests too deep or has too many values.
var ErrShape = errors.New("the JSON nests too deep or has too many values")

// CheckShape bounds how deep data nests and how many values it has: ErrShape
// beyond that. It does not tell whether data is JSON, but holds as far as it is.
// What has few brackets and commas, whether or not they stand in texts, costs
// no more than counting them. Whatever comes from a provider passes here before
// a recursive reader sees it.
func CheckShape(data []byte) error { return CheckValues(data, maxValues) }

// CheckValues is CheckShape with a bound on the values of its own.
func CheckValues(data []byte, most int) error {
	if len(data) <= maxDepth {
		return nil
	}
	opened := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{"))
	if opened <= maxDepth && (len(data) <= most || opened+bytes.Count(data, []byte(",")) <= most) {
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
		if depth > maxDepth || values > most {
			return ErrShape
		}
	}
	return nil
}
