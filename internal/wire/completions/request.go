// Package completions owns the chat-completions form: requests, their check and
// edits, the meter of streams, whole answers and the editor of passing streams.
//
// Invariants: of a body and of a stream only the fields that the gateway owns
// change; an ordinary event of a stream is neither decoded nor copied, and costs
// no allocation; vendors' deviations are tolerated.
package completions

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a chat-completions body that passed the gate. What it asks
// for is set by Check; until then it is zero.
type Request struct {
	form.Request
}

// Open passes a chat-completions body through the gate. It answers
// invalid_encoding, invalid_json (also for keys repeated in any object) or
// invalid_request (not an object, too many keys). The request keeps body; nobody
// may change it afterwards.
func Open(body []byte) (*Request, error) { return form.Open[Request](body) }

// Prompt returns our own count of the prompt's tokens: its messages and tools,
// with perImage for each image.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		messages++
		text.Note(message)
	}
	for _, name := range []string{"tools", "functions", "response_format"} {
		if raw := r.Doc.Raw(name); raw != nil {
			text.Add(raw)
		}
	}
	return r.PromptTokens(c, &text, messages, perImage)
}
