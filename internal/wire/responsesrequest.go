package wire

import (
	"tollgate/internal/wire/rawjson"
)

// ResponsesRequest is a body of the responses form that passed the gate. What
// it asks for is set by Check; until then it is zero.
type ResponsesRequest struct {
	request
}

// OpenResponses passes a responses body through the gate, as OpenChat does. The
// request keeps body; nobody may change it afterwards.
func OpenResponses(body []byte) (*ResponsesRequest, error) {
	r, err := openRequest(body)
	if err != nil {
		return nil, err
	}
	return &ResponsesRequest{r}, nil
}

// Prompt returns our own count of the prompt's tokens: instructions, items and
// tools, with perImage for each image.
func (r *ResponsesRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	messages := 0
	if instructions := r.doc.Raw("instructions"); instructions != nil {
		messages++
		text.take(instructions, 0)
	}
	switch input := r.doc.Raw("input"); {
	case rawjson.IsText(input):
		messages++
		text.take(input, 0)
	default:
		for _, item := range rawjson.Elements(input) {
			messages++
			takeItem(&text, item)
		}
	}
	if tools := r.doc.Raw("tools"); tools != nil {
		text.add(tools)
	}
	if format := rawjson.Field(r.doc.Raw("text"), "format"); format != nil {
		text.add(format)
	}
	return r.promptTokens(c, &text, messages, perImage)
}

// takeItem adds the text of an item of the responses form: content, arguments,
// results, reasoning. It tells whether there was any.
func takeItem(p *produced, item []byte) (any bool) {
	for name, value := range rawjson.Members(item) {
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
