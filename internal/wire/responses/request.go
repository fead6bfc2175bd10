// Package responses owns the responses form: requests, their check and edits, the
// meter of streams, whole answers, the editor of passing streams, and the response
// objects that the gateway writes itself.
//
// Invariants: of a body and of a stream only the fields that the gateway owns
// change; `store` is false on the line and for the client; an ordinary event of a
// stream is not decoded and costs no allocation.
package responses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a body of the responses form that passed the gate. What
// it asks for is set by Check; until then it is zero.
type Request struct {
	form.Request
}

// Open passes a responses body through the gate, as completions.Open does. The
// request keeps body; nobody may change it afterwards.
func Open(body []byte) (*Request, error) { return form.Open[Request](body) }

// Prompt returns our own count of the prompt's tokens: instructions, items and
// tools, with perImage for each image.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	if instructions := r.Doc.Raw("instructions"); instructions != nil {
		messages++
		text.Take(instructions, 0)
	}
	switch input := r.Doc.Raw("input"); {
	case rawjson.IsText(input):
		messages++
		text.Take(input, 0)
	default:
		for _, item := range rawjson.Elements(input) {
			messages++
			takeItem(&text, item)
		}
	}
	if tools := r.Doc.Raw("tools"); tools != nil {
		text.Add(tools)
	}
	if format := rawjson.Field(r.Doc.Raw("text"), "format"); format != nil {
		text.Add(format)
	}
	return r.PromptTokens(c, &text, messages, perImage)
}

// takeItem adds the text of an item of the responses form: content, arguments,
// results, reasoning. It tells whether there was any.
func takeItem(p *form.Output, item []byte) (any bool) {
	for name, value := range rawjson.Members(item) {
		switch string(name) {
		case "id", "type", "status", "role", "phase", "call_id", "encrypted_content", "annotations", "logprobs":
		case "result": // an image
			any = any || len(value) > 2
		default:
			any = p.Take(value, 0) || any
		}
	}
	return any
}
