package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// splice puts text in the place of body[from:to].
type splice struct {
	from, to int
	text     []byte
}

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the owned fields. A `store` that is not false is sent as
// false: nothing is kept at the provider. Call Check first. The result is the
// client's body itself when nothing changes; nobody may write to it.
func (r *ChatRequest) Body(e Edits) []byte {
	d := r.doc
	var edits []splice
	var added []byte
	add := func(name string, value []byte) {
		if m := d.find(name); m != nil {
			edits = append(edits, splice{m.from, m.to, value})
			return
		}
		added = append(append(append(append(added, `,"`...), name...), `":`...), value...)
	}
	if m := d.find("model"); m == nil || unquote(d.body[m.from:m.to]) != e.Model {
		add("model", quote(e.Model))
	}
	if e.Limit > 0 && r.Limit == 0 {
		add(e.LimitField, strconv.AppendInt(nil, e.Limit, 10))
	}
	if keep, ok := boolean(d.raw("store")); keep || !ok {
		add("store", []byte("false"))
	}
	if r.Stream && e.AskUsage && !r.IncludeUsage {
		if d.raw("stream_options") == nil {
			add("stream_options", []byte(`{"include_usage":true}`))
		} else {
			edits = append(edits, askUsage(d))
		}
	}
	if added != nil {
		at, text := d.from+1, added[1:] // an object without members
		if n := len(d.members); n > 0 {
			at, text = d.members[n-1].to, added
		}
		edits = append(edits, splice{at, at, text})
	}
	return spliced(d.body, edits)
}

// askUsage sets include_usage in the stream_options that the client sent.
func askUsage(d *document) splice {
	m := d.find("stream_options")
	options := d.body[m.from:m.to]
	last := 1 // behind the brace
	for inner := range memberSpans(options) {
		if string(inner.name) == "include_usage" {
			return splice{m.from + inner.from, m.from + inner.to, []byte("true")}
		}
		last = inner.to
	}
	text := []byte(`,"include_usage":true`)
	if last == 1 {
		text = text[1:]
	}
	return splice{m.from + last, m.from + last, text}
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

// quote writes text as a JSON string, without HTML escapes.
func quote(text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) // a string: cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
