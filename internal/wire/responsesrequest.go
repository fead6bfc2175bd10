package wire

import (
	"cmp"

	"tollgate/internal/fault"
)

// ResponsesRequest is a body of the responses form that passed the gate. What
// it asks for is set by Check; until then it is zero.
type ResponsesRequest struct {
	Asked

	doc     *document
	opening opening // of the conversation
}

// OpenResponses passes a responses body through the gate, as OpenChat does. The
// request keeps body; nobody may change it afterwards.
func OpenResponses(body []byte) (*ResponsesRequest, error) {
	doc, err := open(body)
	if err != nil {
		return nil, err
	}
	return &ResponsesRequest{doc: doc}, nil
}

// Model returns the model's id as the client sent it; model_not_found when it
// is absent or not a string.
func (r *ResponsesRequest) Model() (string, error) {
	raw := r.doc.raw("model")
	if !isText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `model`, as a string. GET /v1/models lists the models.")
	}
	return unquote(raw), nil
}

// Size returns the bytes of the body.
func (r *ResponsesRequest) Size() int64 { return int64(len(r.doc.body)) }

// Body returns the bytes for a line of the responses form: the client's own,
// in its own order and spacing, but for the owned fields. `store` is always
// sent as false, also where the client left it out: providers keep answers
// otherwise. Call Check first. The result is the client's body itself when
// nothing changes; nobody may write to it.
func (r *ResponsesRequest) Body(e Edits) []byte {
	edits := memberEdits{doc: r.doc}
	edits.setModel(e.Model)
	edits.setLimit(outputLimit, cmp.Or(r.Limit, e.Limit))
	if string(r.doc.raw("store")) != "false" {
		edits.set("store", []byte("false"))
	}
	return edits.body()
}

// Prompt returns our own count of the prompt's tokens: instructions, items and
// tools, with perImage for each image.
func (r *ResponsesRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	tokens := int64(perPrompt)
	if instructions := r.doc.raw("instructions"); instructions != nil {
		tokens += perMessage
		text.take(instructions, 0)
	}
	switch input := r.doc.raw("input"); {
	case isText(input):
		tokens += perMessage
		text.take(input, 0)
	default:
		for _, item := range elements(input) {
			tokens += perMessage
			text.takeItem(item)
		}
	}
	if tools := r.doc.raw("tools"); tools != nil {
		text.add(tools)
	}
	if format := field(r.doc.raw("text"), "format"); format != nil {
		text.add(format)
	}
	tokens += c.Count(text.text, text.bytes)
	tokens += min(r.Bound.Images, maxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, maxCount)
}

// Estimate is a rough count of the prompt's tokens, without looking into it.
func (r *ResponsesRequest) Estimate() int64 {
	return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt
}

// takeItem adds the text of an item of the responses form: content, arguments,
// results, reasoning. It tells whether there was any.
func (p *produced) takeItem(item []byte) (any bool) {
	for name, value := range members(item) {
		switch string(name) {
		case "id", "type", "status", "role", "phase", "call_id", "encrypted_content", "annotations", "logprobs":
		case "result": // an image
			any = any || len(value) > 2
		default:
			any = p.take(value, 0) || any
		}
	}
	return any
}
