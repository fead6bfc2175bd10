package wire

import (
	"slices"

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
// spacing, but for the model and what is left of several limits. The result is
// the client's body itself when nothing changes; nobody may write to it.
func (r *MessagesRequest) Body(e Edits) []byte {
	edits := memberEdits{doc: r.doc}
	edits.setModel(e.Model)
	edits.setLimit("max_tokens", r.Limit)
	return edits.body()
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *MessagesRequest) CountBody(e Edits) []byte {
	edits := memberEdits{doc: r.doc}
	if r.doc.find("model") != nil {
		edits.setModel(e.Model)
	}
	for _, m := range r.doc.members {
		if isNotCounted(string(m.name)) {
			edits.drop(string(m.name))
		}
	}
	return edits.body()
}

// isNotCounted tells whether a member of requests is refused by counts.
func isNotCounted(name string) bool {
	switch name {
	case "stream", "metadata", "stop_sequences", "temperature", "top_p", "top_k", "service_tier", "inference_geo":
		return true
	}
	return slices.Contains(limitFields, name)
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
