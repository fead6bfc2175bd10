package responses

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// textSum is the size and a hash of a written text, without escapes.
type textSum struct {
	size int
	sum  uint64
}

// add adds the contents of a JSON string.
func (t *textSum) add(contents []byte) {
	text := contents
	if bytes.IndexByte(contents, '\\') >= 0 {
		text = rawjson.AppendUnquoted(nil, contents)
	}
	*t = textSum{t.size + len(text), wire.Fold(t.sum, text)}
}

// rest returns the unwritten rest of whole, a JSON string, as the contents of a JSON string. It returns nil
// if whole does not start with the written text.
func (t *textSum) rest(whole []byte) []byte {
	if t.size == 0 {
		return conversation.Contents(whole)
	}
	text := rawjson.AppendUnquoted(nil, rawjson.Contents(whole))
	if len(text) <= t.size {
		return nil
	}
	if wire.Fold(0, text[:t.size]) != t.sum {
		return nil
	}
	return conversation.AppendEscaped(nil, text[t.size:])
}
