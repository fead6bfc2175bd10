package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// EditElements replaces the elements of a member of each message by the results of edit: the element
// itself, another, or nil to remove it. If no element is left, the member is removed, or the message
// if whole is set.
func (r *Request) EditElements(m *rawjson.Edits, member string, whole bool, edit func(element []byte) []byte) {
	out, edited := []byte{}, false
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		rest, changed := editElements(message, member, whole, edit)
		if edited = edited || changed; rest != nil {
			out = append(append(out, ','), rest...)
		}
	}
	if !edited {
		return // the client's bytes stay
	}
	if len(out) > 0 {
		out = out[1:]
	}
	m.Set("messages", rawjson.Put(nil, "[", out, "]"))
}

// editElements returns a message with edited elements, or nil to remove it, and whether it changed.
func editElements(message []byte, member string, whole bool, edit func(element []byte) []byte) (out []byte, changed bool) {
	value := rawjson.Field(message, member)
	if len(value) == 0 || value[0] != '[' {
		return message, false
	}
	var rest []byte
	for _, element := range rawjson.Elements(value) {
		now := edit(element)
		changed = changed || !bytes.Equal(now, element)
		if now != nil {
			rest = append(append(rest, ','), now...)
		}
	}
	switch {
	case !changed:
		return message, false
	case rest == nil && whole:
		return nil, true
	}
	out = []byte{'{'}
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
	return append(out, '}'), true
}

// IsSealed reports whether a block or a detail is sealed.
func IsSealed(element []byte) bool {
	for _, name := range [...]string{"signature", "data"} {
		if bytes.HasPrefix(rawjson.Contents(rawjson.Field(element, name)), []byte(wire.SealMark)) {
			return true
		}
	}
	return false
}
