package rawjson

import (
	"bytes"
	"slices"
)

// Splice puts text in the place of body[from:to].
type Splice struct {
	From, To int
	Text     []byte
}

// Edits are the edits of the top-level members of a body.
type Edits struct {
	Doc     *RequestBody
	Splices []Splice
	added   []byte   // members that the body lacks, each after a comma
	dropped []string // members that the body has
}

// Drop leaves out members that the body has.
func (m *Edits) Drop(names ...string) { m.dropped = append(m.dropped, names...) }

// Set gives a member a value, where it stands or else behind the others.
func (m *Edits) Set(name string, value []byte) {
	if found := m.Doc.Find(name); found != nil {
		m.Splices = append(m.Splices, Splice{found.From, found.To, value})
		return
	}
	m.added = AppendMember(m.added, name, value)
}

// SetText gives a member a text, unless it has it already.
func (m *Edits) SetText(name, text string) {
	if found := m.Doc.Find(name); found == nil || Unquote(m.Doc.Body[found.From:found.To]) != text {
		m.Set(name, Quote(text))
	}
}

// Body returns the body with the edits: itself where there are none. It shares what
// they leave as it is.
func (m *Edits) Body() Pieces {
	d := m.Doc
	behind, kept := d.from+1, len(m.dropped) == 0 && len(d.Members) > 0
	if len(m.dropped) > 0 {
		behind, kept = m.leaveOut()
	} else if kept {
		behind = d.Members[len(d.Members)-1].To
	}
	if m.added != nil {
		text := m.added
		if !kept {
			text = text[1:]
		}
		m.Splices = append(m.Splices, Splice{behind, behind, text})
	}
	return pieces(d.Body, m.Splices)
}

// leaveOut takes out the dropped members, each with the comma before it, or, as
// long as none was kept, the one behind it. It returns the end of the last
// member, and whether any was kept.
func (m *Edits) leaveOut() (behind int, kept bool) {
	d := m.Doc
	behind = d.from + 1
	for i := range d.Members {
		from, to := d.Members[i].From, d.Members[i].To
		switch comma := bytes.IndexByte(d.Body[behind:from], ','); {
		case slices.Contains(m.dropped, string(d.Members[i].Name)):
			m.Splices = append(m.Splices, Splice{behind, to, nil})
		case !kept && i > 0:
			m.Splices = append(m.Splices, Splice{behind, behind + comma + 1, nil})
			kept = true
		default:
			kept = true
		}
		behind = to
	}
	return behind, kept
}

// Spliced returns body with the edits, which do not overlap.
func Spliced(body []byte, edits []Splice) []byte { return pieces(body, edits).Bytes() }

// pieces is body with the edits, which do not overlap, in pieces.
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
