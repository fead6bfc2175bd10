package wire

import (
	"bytes"

	"tollgate/internal/fault"
)

// MessagesRequest is a body of the native messages form that passed the gate.
// What it asks for is set by Check; until then it is zero.
type MessagesRequest struct {
	Asked

	doc     *document
	opening opening // of the conversation
}

// OpenMessages passes a messages body through the gate, as OpenChat does. The
// request keeps body; nobody may change it afterwards.
func OpenMessages(body []byte) (*MessagesRequest, error) {
	doc, err := open(body)
	if err != nil {
		return nil, err
	}
	return &MessagesRequest{doc: doc}, nil
}

// Model returns the model's id as the client sent it; invalid_request when it
// is absent or not a string.
func (r *MessagesRequest) Model() (string, error) {
	raw := r.doc.raw("model")
	if !isText(raw) || len(raw) == 2 {
		return "", fault.At(fault.InvalidRequest, "model", "Name the model in `model`, as a string. GET /native/v1/models lists the models.")
	}
	return unquote(raw), nil
}

// Size returns the bytes of the body.
func (r *MessagesRequest) Size() int64 { return int64(len(r.doc.body)) }

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the model. The limit is always the client's own. The result
// is the client's body itself when nothing changes; nobody may write to it.
func (r *MessagesRequest) Body(e Edits) []byte {
	d := r.doc
	m := d.find("model")
	switch {
	case m == nil:
		text := append(append([]byte(`"model":`), quote(e.Model)...), ',')
		if len(d.members) == 0 {
			text = text[:len(text)-1]
		}
		return spliced(d.body, []splice{{d.from + 1, d.from + 1, text}})
	case unquote(d.body[m.from:m.to]) == e.Model:
		return d.body
	}
	return spliced(d.body, []splice{{m.from, m.to, quote(e.Model)}})
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *MessagesRequest) CountBody(e Edits) []byte {
	d := r.doc
	var edits []splice
	behind, kept := d.from+1, false
	for _, m := range d.members {
		comma := behind + max(bytes.IndexByte(d.body[behind:m.from], ','), 0)
		switch {
		case isNotCounted(string(m.name)):
			edits = append(edits, splice{behind, m.to, nil})
		case !kept && behind > d.from+1:
			edits = append(edits, splice{behind, comma + 1, nil})
		}
		if string(m.name) == "model" {
			edits = append(edits, splice{m.from, m.to, quote(e.Model)})
		}
		kept = kept || !isNotCounted(string(m.name))
		behind = m.to
	}
	return spliced(d.body, edits)
}

// isNotCounted tells whether a member of requests is refused by counts.
func isNotCounted(name string) bool {
	switch name {
	case "max_tokens", "stream", "metadata", "stop_sequences", "temperature", "top_p", "top_k", "service_tier", "inference_geo":
		return true
	}
	return false
}

// Prompt returns our own count of the prompt's tokens: system, messages and
// tools, with perImage for each image.
func (r *MessagesRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	tokens := int64(perPrompt)
	if system := r.doc.raw("system"); system != nil {
		tokens += perMessage
		text.take(system, 0)
	}
	for _, message := range elements(r.doc.raw("messages")) {
		tokens += perMessage
		text.note(message)
		for _, block := range elements(field(message, "content")) {
			if source := field(block, "source"); unquote(field(source, "type")) == "text" {
				text.take(field(source, "data"), 0)
			}
		}
	}
	if tools := r.doc.raw("tools"); tools != nil {
		text.add(tools)
	}
	tokens += c.Count(text.text, text.bytes)
	tokens += min(r.Bound.Images, maxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, maxCount)
}

// Estimate is a rough count of the prompt's tokens, without looking into it.
func (r *MessagesRequest) Estimate() int64 {
	return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt
}
