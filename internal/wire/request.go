package wire

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// request is a body of any form that passed the gate, and what it asks for.
type request struct {
	Asked

	doc     *rawjson.Document
	opening opening // of the conversation
}

// openRequest passes a body through the gate. It keeps body.
func openRequest(body []byte) (request, error) {
	doc, err := rawjson.Open(body)
	return request{doc: doc}, err
}

// Has tells whether the client sent a field, be it null.
func (r *request) Has(field string) bool { return r.doc.Find(field) != nil }

// Size returns the bytes of the body.
func (r *request) Size() int64 { return int64(len(r.doc.Body)) }

// Model returns the model's id as the client sent it; model_not_found when it
// is absent or not a string.
func (r *request) Model() (string, error) {
	raw := r.doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `model`, as a string. GET /v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Estimate is a rough count of the prompt's tokens, without looking into it.
func (r *request) Estimate() int64 { return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt }

// Tokens that the chat-completions form costs around the text itself.
const (
	perMessage = 4
	perPrompt  = 3
)

// promptTokens is our own count of a prompt: its text, so many messages, and
// perImage for each image.
func (r *request) promptTokens(c *Counter, text *produced, messages int, perImage int64) int64 {
	tokens := int64(perPrompt+perMessage*messages) + c.Count(text.text, text.bytes)
	tokens += min(r.Bound.Images, rawjson.MaxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, rawjson.MaxCount)
}
