package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// RemoveSealed removes elements for lines of another form (wire.SealMark) from a member of each
// message. If no element is left, the member is removed, or the message if whole is set.
func (r *Request) RemoveSealed(m *rawjson.Edits, member string, whole bool) {
	if !r.Doc.HasPrefix() {
		return
	}
	out := []byte{}
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		if message = withoutSealed(message, member, whole); message != nil {
			out = append(append(out, ','), message...)
		}
	}
	if len(out) > 0 {
		out = out[1:]
	}
	m.Set("messages", rawjson.Put(nil, "[", out, "]"))
}

// withoutSealed returns a message without its sealed elements, or nil to remove it.
func withoutSealed(message []byte, member string, whole bool) []byte {
	value := rawjson.Field(message, member)
	if !bytes.Contains(value, []byte(`"`+wire.SealMark)) || value[0] != '[' {
		return message
	}
	var rest []byte
	found := false
	for _, element := range rawjson.Elements(value) {
		if isSealed(element) {
			found = true
			continue
		}
		rest = append(append(rest, ','), element...)
	}
	switch {
	case !found:
		return message
	case rest == nil && whole:
		return nil
	}
	out := []byte{'{'}
	for name, value := range rawjson.Members(message) {
		if string(name) == member {
			if rest == nil {
				continue
			}
			value = rawjson.Put(nil, "[", rest[1:], "]")
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, rawjson.Quote(string(name))...), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// isSealed reports whether a block or a detail is sealed.
func isSealed(element []byte) bool {
	for _, name := range [...]string{"signature", "data"} {
		if bytes.HasPrefix(rawjson.Contents(rawjson.Field(element, name)), []byte(wire.SealMark)) {
			return true
		}
	}
	return false
}
