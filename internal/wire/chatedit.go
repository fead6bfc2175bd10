package wire

import (
	"cmp"
)

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the owned fields. A `store` that is not false is sent as
// false: nothing is kept at the provider. Call Check first. The result is the
// client's body itself when nothing changes; nobody may write to it.
func (r *ChatRequest) Body(e Edits) []byte {
	d := r.doc
	edits := memberEdits{doc: d}
	edits.setText("model", e.Model)
	r.setLimit(&edits, r.limitField(e), cmp.Or(r.Limit, e.Limit))
	if keep, ok := boolean(d.raw("store")); keep || !ok {
		edits.set("store", []byte("false"))
	}
	if r.Stream && e.AskUsage && !r.IncludeUsage {
		if d.raw("stream_options") == nil {
			edits.set("stream_options", []byte(`{"include_usage":true}`))
		} else {
			edits.splices = append(edits.splices, askUsage(d))
		}
	}
	return edits.body()
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

// limitField is where a chat line reads the limit: where the edits say, else
// where the client sent it.
func (r *ChatRequest) limitField(e Edits) string {
	switch {
	case e.LimitField != "":
		return e.LimitField
	case r.doc.raw("max_completion_tokens") != nil:
		return "max_completion_tokens"
	}
	return "max_tokens"
}
