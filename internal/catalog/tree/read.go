package tree

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Read reads a text as JSON if it is valid JSON, and otherwise as YAML. The error is a
// *SyntaxError.
func Read(raw []byte) (*Value, error) {
	if offset := invalidUTF8Offset(raw); offset >= 0 {
		line := bytes.Count(raw[:offset], []byte("\n"))
		column := offset - bytes.LastIndexByte(raw[:offset], '\n')
		return nil, syntaxError(Position{line + 1, column}, "is not valid UTF-8")
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	if json.Valid(raw) {
		return readJSON(raw)
	}
	return readYAML(raw)
}

// invalidUTF8Offset returns the offset of the first byte of invalid UTF-8, or -1.
func invalidUTF8Offset(raw []byte) int {
	for i := 0; i < len(raw); {
		r, size := utf8.DecodeRune(raw[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}
