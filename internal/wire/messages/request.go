// Package messages owns the messages form: requests and counts, their check and
// edits, the meter of streams, whole answers and the editor of passing streams.
//
// Invariants: of a body and of a stream only the fields that the gateway owns
// change; an ordinary event of a stream is neither decoded nor copied, and costs
// no allocation.
package messages

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a body of the native messages form that passed the gate.
// What it asks for is set by Check; until then it is zero.
type Request struct {
	form.Request
}

// Open passes a messages body through the gate, as completions.Open does. The
// request keeps body; nobody may change it afterwards.
func Open(body []byte) (*Request, error) { return form.Open[Request](body) }

// Model returns the model's id as the client sent it; invalid_request when it
// is absent or not a string.
func (r *Request) Model() (string, error) {
	raw := r.Doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.InvalidRequest, "model", "Name the model in `{param}`, as a string. GET /native/v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Prompt returns our own count of the prompt's tokens: system, messages and
// tools, with perImage for each image.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	if system := r.Doc.Raw("system"); system != nil {
		messages++
		text.Take(system, 0)
	}
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		messages++
		text.Note(message)
		for _, block := range rawjson.Elements(rawjson.Field(message, "content")) {
			if source := rawjson.Field(block, "source"); rawjson.Unquote(rawjson.Field(source, "type")) == "text" {
				text.Take(rawjson.Field(source, "data"), 0)
			}
		}
	}
	if tools := r.Doc.Raw("tools"); tools != nil {
		text.Add(tools)
	}
	return r.PromptTokens(c, &text, messages, perImage)
}
