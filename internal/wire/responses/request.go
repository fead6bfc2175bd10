// Package responses owns the responses form: requests, their check and edits, the meter of streams,
// answers, the editor of streams of the same form, and the response objects written by the gateway.
//
// Invariants: in a body and in a stream, only the gateway's fields change; `store` is false for the
// line; an ordinary event of a stream is not decoded and costs no allocation.
package responses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a responses body accepted by rawjson.Open. Check sets its parameters.
type Request struct {
	form.Request
	// Stored is set if the gateway stores the answer. The answer then has the gateway's id and says
	// `store: true`.
	Stored bool

	previous string // the continued response, of a request made by Continue
	earlier  int    // number of items of earlier turns
	text     bool   // the client's own input is a string
}

// Open checks the JSON of a responses body, as completions.Open does. The request retains body,
// which must not be changed.
func Open(body []byte) (*Request, error) {
	doc, err := form.OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &Request{Request: form.Request{Doc: doc}}, nil
}

// Prompt implements wire.Request. It counts instructions, items and tools.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	if instructions := r.Doc.Raw("instructions"); instructions != nil {
		messages++
		text.AddAll(instructions, 0)
	}
	switch input := r.Doc.Raw("input"); {
	case rawjson.IsText(input):
		messages++
		text.AddAll(input, 0)
	default:
		for _, item := range rawjson.Elements(input) {
			messages++
			addItem(&text, item)
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

// addItem adds the text of an item: content, arguments, results, reasoning. It reports whether
// there was any.
func addItem(o *form.Output, item []byte) (any bool) {
	for name, value := range rawjson.Members(item) {
		switch string(name) {
		case "id", "type", "status", "role", "phase", "call_id", "encrypted_content", "annotations", "logprobs":
		case "result": // an image
			any = any || len(value) > 2
		default:
			any = o.AddAll(value, 0) || any
		}
	}
	return any
}
