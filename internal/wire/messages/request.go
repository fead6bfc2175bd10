// Package messages owns the messages form: the parsing, checks and edits of requests and of token
// counts, answers, and the meter and the editor of streams.
//
// Invariants: only the gateway's own fields change in a body and in a stream. An ordinary event of
// a stream is neither decoded nor copied, and needs no allocation.
package messages

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a messages body accepted by rawjson.Open. Check sets its parameters.
type Request struct {
	form.Request
}

// Open checks the JSON of a messages body, as completions.Open does. The request retains body; the
// caller must not change body afterwards.
func Open(body []byte) (*Request, error) { return form.Open[Request](body) }

// Model returns the model id sent by the client. If the id is absent or not a string, Model returns
// an invalid_request error.
func (r *Request) Model() (string, error) {
	raw := r.Doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.InvalidRequest, "model", "Name the model in `{param}`, as a string. GET /native/v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Prompt implements wire.Request. It counts the texts of system, messages and tools.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	if system := r.Doc.Raw("system"); system != nil {
		messages++
		text.AddAll(system, 0)
	}
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		messages++
		text.AddMessage(message)
		for _, block := range rawjson.Elements(rawjson.Field(message, "content")) {
			if source := rawjson.Field(block, "source"); rawjson.Unquote(rawjson.Field(source, "type")) == "text" {
				text.AddAll(rawjson.Field(source, "data"), 0)
			}
		}
	}
	if tools := r.Doc.Raw("tools"); tools != nil {
		text.Add(tools)
	}
	return r.PromptTokens(c, &text, messages, perImage)
}
