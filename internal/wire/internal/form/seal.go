package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// EditMessages replaces each message by the result of edit: the message itself, another, or nil to
// remove it. If no message changes, the client's bytes stay.
func (r *Request) EditMessages(m *rawjson.Edits, edit func(message []byte) []byte) {
	if list, changed := EditElements(r.Doc.Raw("messages"), edit); changed {
		m.Set("messages", list)
	}
}

// EditElements replaces each element of an array by the result of edit: the element itself, another,
// or nil to remove it. It reports whether an element changed. Other values stay.
func EditElements(array []byte, edit func(element []byte) []byte) (out []byte, changed bool) {
	if len(array) == 0 || array[0] != '[' {
		return array, false
	}
	var edits []rawjson.Splice
	removed := false
	for from, to := range rawjson.ElementSpans(array) {
		element := array[from:to]
		now := edit(element)
		if removed = removed || now == nil; now != nil {
			out = append(append(out, ','), now...)
		}
		if !bytes.Equal(now, element) {
			edits = append(edits, rawjson.Splice{From: from, To: to, Text: now})
		}
	}
	switch {
	case edits == nil:
		return array, false
	case !removed:
		return rawjson.Replace(array, edits), true
	case out == nil:
		return []byte("[]"), true
	}
	out[0] = '['
	return append(out, ']'), true
}

// EditMember replaces the value of a member of an object by the result of edit, or removes the member
// if edit returns nil. All other bytes stay, unless a member is removed.
func EditMember(object []byte, name string, edit func(value []byte) []byte) []byte {
	for m := range rawjson.Spans(object) {
		if string(m.Name) != name {
			continue
		}
		now := edit(object[m.From:m.To])
		if now == nil {
			return WithoutMember(object, name)
		}
		return rawjson.Replace(object, []rawjson.Splice{{From: m.From, To: m.To, Text: now}})
	}
	return object
}

// WithoutMember returns an object without a member.
func WithoutMember(object []byte, name string) []byte {
	out := []byte{'{'}
	for member, value := range rawjson.Members(object) {
		if string(member) == name {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, rawjson.Quote(string(member))...), ':')
		out = append(out, value...)
	}
	return append(out, '}')
}

// OpenSealed removes the seals from the state in the named members of a part. It returns nil if state is
// sealed for another account. A part without sealed state is unchanged.
func OpenSealed(part []byte, origin string, members ...string) []byte {
	for _, name := range members {
		value := rawjson.Field(part, name)
		if !rawjson.IsText(value) || !wire.IsSealed(rawjson.Contents(value)) {
			continue
		}
		data := wire.OpenSeal(rawjson.Contents(value), origin)
		if data == nil {
			return nil
		}
		part = EditMember(part, name, func([]byte) []byte { return rawjson.Put(nil, `"`, data, `"`) })
	}
	return part
}
