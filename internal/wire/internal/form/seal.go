package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Unsealed sets the messages of a request without what clients carry in them for
// lines of another form (wire.SealMark): elements of the named member of messages.
// A message that holds nothing else in that member is without it; with whole set
// it is left out.
func (r *Request) Unsealed(m *rawjson.Edits, member string, whole bool) {
	raw := r.Doc.Raw("messages")
	if !bytes.Contains(raw, []byte(`"`+wire.SealMark)) {
		return
	}
	out := []byte{}
	for _, message := range rawjson.Elements(raw) {
		if message = unsealedMessage(message, member, whole); message != nil {
			out = append(append(out, ','), message...)
		}
	}
	if len(out) > 0 {
		out = out[1:]
	}
	m.Set("messages", rawjson.Put(nil, "[", out, "]"))
}

// unsealedMessage is a message without what is sealed in a member of it; nil where
// it is to be left out.
func unsealedMessage(message []byte, member string, whole bool) []byte {
	value := rawjson.Field(message, member)
	if !bytes.Contains(value, []byte(`"`+wire.SealMark)) || value[0] != '[' {
		return message
	}
	var kept []byte
	found := false
	for _, element := range rawjson.Elements(value) {
		if isSealed(element) {
			found = true
			continue
		}
		kept = append(append(kept, ','), element...)
	}
	switch {
	case !found:
		return message
	case kept == nil && whole:
		return nil
	}
	out := []byte{'{'}
	for name, value := range rawjson.Members(message) {
		if string(name) == member {
			if kept == nil {
				continue
			}
			value = rawjson.Put(nil, "[", kept[1:], "]")
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, rawjson.Quote(string(name))...), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// isSealed tells whether a block or a detail is sealed.
func isSealed(element []byte) bool {
	for _, name := range [...]string{"signature", "data"} {
		if bytes.HasPrefix(rawjson.Contents(rawjson.Field(element, name)), []byte(wire.SealMark)) {
			return true
		}
	}
	return false
}
