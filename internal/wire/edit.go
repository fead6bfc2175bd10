package wire

import (
	"bytes"
	"slices"
)

// splice puts text in the place of body[from:to].
type splice struct {
	from, to int
	text     []byte
}

// memberEdits are the edits of the top-level members of a body.
type memberEdits struct {
	doc     *document
	splices []splice
	added   []byte   // members that the body lacks, each after a comma
	dropped []string // members that the body has
}

// drop leaves a member out that the body has.
func (m *memberEdits) drop(name string) { m.dropped = append(m.dropped, name) }

// set gives a member a value, where it stands or else behind the others.
func (m *memberEdits) set(name string, value []byte) {
	if found := m.doc.find(name); found != nil {
		m.splices = append(m.splices, splice{found.from, found.to, value})
		return
	}
	m.added = appendMember(m.added, name, value)
}

// setText gives a member a text, unless it has it already.
func (m *memberEdits) setText(name, text string) {
	if found := m.doc.find(name); found == nil || unquote(m.doc.body[found.from:found.to]) != text {
		m.set(name, quote(text))
	}
}

// body returns the body with the edits: itself where there are none.
func (m *memberEdits) body() []byte {
	d := m.doc
	behind, kept := d.from+1, len(m.dropped) == 0 && len(d.members) > 0
	if len(m.dropped) > 0 {
		behind, kept = m.leaveOut()
	} else if kept {
		behind = d.members[len(d.members)-1].to
	}
	if m.added != nil {
		text := m.added
		if !kept {
			text = text[1:]
		}
		m.splices = append(m.splices, splice{behind, behind, text})
	}
	return spliced(d.body, m.splices)
}

// leaveOut takes out the dropped members, each with the comma before it, or, as
// long as none was kept, the one behind it. It returns the end of the last
// member, and whether any was kept.
func (m *memberEdits) leaveOut() (behind int, kept bool) {
	d := m.doc
	behind = d.from + 1
	for i := range d.members {
		from, to := d.members[i].from, d.members[i].to
		switch comma := bytes.IndexByte(d.body[behind:from], ','); {
		case slices.Contains(m.dropped, string(d.members[i].name)):
			m.splices = append(m.splices, splice{behind, to, nil})
		case !kept && i > 0:
			m.splices = append(m.splices, splice{behind, behind + comma + 1, nil})
			kept = true
		default:
			kept = true
		}
		behind = to
	}
	return behind, kept
}

// spliced returns body with the edits, which do not overlap.
func spliced(body []byte, edits []splice) []byte {
	if len(edits) == 0 {
		return body
	}
	slices.SortStableFunc(edits, func(a, b splice) int { return a.from - b.from })
	size := len(body)
	for _, e := range edits {
		size += len(e.text) - (e.to - e.from)
	}
	out := make([]byte, 0, size)
	at := 0
	for _, e := range edits {
		out = append(append(out, body[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, body[at:]...)
}

// around splits a JSON object around the value of a member, which is replaced:
// pieces to be written one after the other, so that a long text is not copied.
func around(body []byte, name string, value []byte) [3][]byte {
	from := max(bytes.IndexByte(body, '{'), 0)
	for m := range memberSpans(body[from:]) {
		if string(m.name) == name {
			return [3][]byte{body[:from+m.from], value, body[from+m.to:]}
		}
	}
	return [3][]byte{body}
}
