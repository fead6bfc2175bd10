// Package completions owns the chat-completions form: requests, their check and edits, the meter of
// streams, answers and the editor of streams of the same form.
//
// Invariants: in a body and in a stream, only the gateway's fields change; an ordinary event of a
// stream is neither decoded nor copied, and costs no allocation; vendors' deviations are tolerated.
package completions

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Request is a chat-completions body accepted by rawjson.Open. Check sets its parameters.
type Request struct {
	form.Request
}

// Open checks the JSON of a chat-completions body. It returns invalid_encoding, invalid_json (also
// for a repeated key) or invalid_request (not an object, too many keys). The request retains body,
// which must not be changed.
func Open(body []byte) (*Request, error) { return form.Open[Request](body) }

// Prompt implements wire.Request. It counts the messages and tools.
func (r *Request) Prompt(c *wire.Counter, perImage int64) int64 {
	var text form.Output
	messages := 0
	for _, message := range rawjson.Elements(r.Doc.Raw("messages")) {
		messages++
		text.AddMessage(message)
	}
	for _, name := range []string{"tools", "functions", "response_format"} {
		if raw := r.Doc.Raw(name); raw != nil {
			text.Add(raw)
		}
	}
	return r.PromptTokens(c, &text, messages, perImage)
}
