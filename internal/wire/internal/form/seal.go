package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// RemoveSealed removes elements for lines of another form (wire.SealMark) from a member of each
// message, and those for which foreign, if not nil, returns true. If no element is left, the member
// is removed, or the message if whole is set.
func (r *Request) RemoveSealed(m *rawjson.Edits, member string, whole bool, foreign func(element []byte) bool) {
	if !r.Doc.HasPrefix() && foreign == nil {
		return
	}
	remove := func(element []byte) bool { return isSealed(element) || foreign != nil && foreign(element) }
	out, removed := []byte{}, false
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		rest, changed := without(message, member, whole, remove)
		if removed = removed || changed; rest != nil {
			out = append(append(out, ','), rest...)
		}
	}
	if !removed {
		return // the client's bytes stay
	}
	if len(out) > 0 {
		out = out[1:]
	}
	m.Set("messages", rawjson.Put(nil, "[", out, "]"))
}

// without returns a message without some of its elements, or nil to remove it, and whether it changed.
func without(message []byte, member string, whole bool, remove func(element []byte) bool) (out []byte, changed bool) {
	value := rawjson.Field(message, member)
	if len(value) == 0 || value[0] != '[' {
		return message, false
	}
	var rest []byte
	for _, element := range rawjson.Elements(value) {
		if remove(element) {
			changed = true
			continue
		}
		rest = append(append(rest, ','), element...)
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

// isSealed reports whether a block or a detail is sealed.
func isSealed(element []byte) bool {
	for _, name := range [...]string{"signature", "data"} {
		if bytes.HasPrefix(rawjson.Contents(rawjson.Field(element, name)), []byte(wire.SealMark)) {
			return true
		}
	}
	return false
}
