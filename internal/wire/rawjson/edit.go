package rawjson

import (
	"bytes"
	"slices"
)

// Splice replaces body[From:To] by Text.
type Splice struct {
	From, To int
	Text     []byte
}

// Edits collects edits of the top-level members of a body.
type Edits struct {
	Doc     *RequestBody
	Splices []Splice
	members []byte // new members, each after a comma
	omitted []string
}

// Drop omits members of the body.
func (m *Edits) Drop(names ...string) { m.omitted = append(m.omitted, names...) }

// Set sets a member's value. A new member is added at the end.
func (m *Edits) Set(name string, value []byte) {
	if found := m.Doc.Find(name); found != nil {
		m.Splices = append(m.Splices, Splice{found.From, found.To, value})
		return
	}
	m.members = AppendMember(m.members, name, value)
}

// SetText sets a member to a string, unless it already has this value.
func (m *Edits) SetText(name, text string) {
	if found := m.Doc.Find(name); found == nil || Unquote(m.Doc.Body[found.From:found.To]) != text {
		m.Set(name, Quote(text))
	}
}

// Body returns the edited body. It shares the unchanged bytes with the original.
func (m *Edits) Body() Pieces {
	d := m.Doc
	end, hasMembers := d.from+1, len(m.omitted) == 0 && len(d.Members) > 0
	if len(m.omitted) > 0 {
		end, hasMembers = m.remove()
	} else if hasMembers {
		end = d.Members[len(d.Members)-1].To
	}
	if m.members != nil {
		text := m.members
		if !hasMembers {
			text = text[1:]
		}
		m.Splices = append(m.Splices, Splice{end, end, text})
	}
	return pieces(d.Body, m.Splices)
}

// remove splices out the omitted members, each with the comma before it, or, while no member is
// kept, with the comma after it. It returns the end of the last member, and whether any member was
// kept.
func (m *Edits) remove() (end int, hasMembers bool) {
	d := m.Doc
	end = d.from + 1
	for i := range d.Members {
		from, to := d.Members[i].From, d.Members[i].To
		switch comma := bytes.IndexByte(d.Body[end:from], ','); {
		case slices.Contains(m.omitted, string(d.Members[i].Name)):
			m.Splices = append(m.Splices, Splice{end, to, nil})
		case !hasMembers && i > 0:
			m.Splices = append(m.Splices, Splice{end, end + comma + 1, nil})
			hasMembers = true
		default:
			hasMembers = true
		}
		end = to
	}
	return end, hasMembers
}

// Replace returns body with the edits, which must not overlap.
func Replace(body []byte, edits []Splice) []byte { return pieces(body, edits).Bytes() }

// pieces is like Replace, but shares the unchanged bytes of body.
func pieces(body []byte, edits []Splice) Pieces {
	slices.SortStableFunc(edits, func(a, b Splice) int { return a.From - b.From })
	out := make(Pieces, 0, 2*len(edits)+1)
	at := 0
	for _, e := range edits {
		out = append(out, body[at:e.From], e.Text)
		at = e.To
	}
	return append(out, body[at:])
}
