// Package form owns what the readers of all forms share: the request that passed
// the gate, the checks that are the same everywhere, what an answer has put out
// so far, the usage that providers report, and how answers end. Each form's own
// words are in its folder.
//
// Invariants: a check's error is a *fault.Error with the path of the field;
// counts are never negative, parts are within their wholes; of an answer's text
// no more is kept than counting needs.
package form

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// bytesPerToken is the estimate where nothing can be counted.
const bytesPerToken = 4

// Request is a body of any form that passed the gate, and what it asks for.
type Request struct {
	wire.Parameters

	Doc *rawjson.RequestBody
	Key wire.ConversationKey // of the conversation

	marked     []marked           // fields that the checks after CheckNames look at
	cacheTimes []wire.PricedField // cache times that need a price
}

// Open checks the JSON of a body and returns it as the request type of a form. The request
// keeps body, which must not be changed afterwards.
func Open[R ~struct{ Request }](body []byte) (*R, error) {
	doc, err := OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &R{Request{Doc: doc}}, nil
}

// OpenDocument checks the JSON of a body and notes its references and addresses. The document keeps
// body, which must not be changed afterwards.
func OpenDocument(body []byte) (*rawjson.RequestBody, error) {
	return rawjson.OpenWatching(body, keyRules)
}

// Has tells whether the client sent a field, be it null.
func (r *Request) Has(field string) bool { return r.Doc.Find(field) != nil }

// HasTools tells whether the client sent tools.
func (r *Request) HasTools() bool {
	for range rawjson.Elements(r.Doc.Raw("tools")) {
		return true
	}
	return false
}

// Size returns the bytes of the body.
func (r *Request) Size() int64 { return int64(len(r.Doc.Body)) }

// Model returns the model's id as the client sent it; model_not_found when it
// is absent or not a string.
func (r *Request) Model() (string, error) {
	raw := r.Doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `{param}`, as a string. GET /v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Estimate is a rough count of the prompt's tokens, without looking into it.
func (r *Request) Estimate() int64 { return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt }

// Tokens that the chat-completions form costs around the text itself.
const (
	perMessage = 4
	perPrompt  = 3
)

// PromptTokens is our own count of a prompt: its text, so many messages, and
// perImage for each image.
func (r *Request) PromptTokens(c *wire.Counter, text *Output, messages int, perImage int64) int64 {
	tokens := int64(perPrompt+perMessage*messages) + text.Completion(c)
	tokens += min(r.Bound.Images, rawjson.MaxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, rawjson.MaxCount)
}
