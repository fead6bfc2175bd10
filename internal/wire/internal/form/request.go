// Package form owns the code shared by the readers of all forms: the checked request, the common
// checks, the output of an answer so far, the provider's usage, and finish reasons. The rest of
// each form is in its own package.
//
// Invariants: a check returns a *fault.Error with the path of the field; counts are never negative
// and parts never exceed their wholes; no more of an answer's text is retained than needed to count
// tokens.
package form

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// bytesPerToken is the estimate for text that is not tokenized.
const bytesPerToken = 4

// Request is a body of any form accepted by rawjson.Open, with its parameters.
type Request struct {
	wire.Parameters

	Doc *rawjson.RequestBody
	Key wire.ConversationKey // of the conversation
	// SoundInput is the path of the first part with sound, or empty.
	SoundInput string

	special    []specialField     // found by CheckNames for later checks
	cacheTimes []wire.PricedField // cache times in need of a price
}

// Open checks the JSON of a body and returns it as the request type of a form. The request retains
// body, which must not be changed.
func Open[R ~struct{ Request }](body []byte) (*R, error) {
	doc, err := OpenDocument(body)
	if err != nil {
		return nil, err
	}
	return &R{Request{Doc: doc}}, nil
}

// OpenDocument checks the JSON of a body and finds its references and addresses. The document retains
// body, which must not be changed.
func OpenDocument(body []byte) (*rawjson.RequestBody, error) {
	return rawjson.OpenWatching(body, keyRules)
}

// OpenFree is OpenDocument for a form with its own names and with checks that accept known names only. The
// client chooses the names inside the members for which free returns true. prefix is what Doc.HasPrefix looks
// for.
func OpenFree(body []byte, prefix string, free func(name []byte, depth int) bool) (*rawjson.RequestBody, error) {
	return rawjson.OpenWatching(body, rawjson.KeyRules{
		Prefix: prefix, FilePrefix: fileAddress, FileKeys: fileKeys, Match: isMatch, Free: free,
		Spelling: func([]byte) (string, bool) { return "", false },
	})
}

// Has reports whether the client sent a field, even if null.
func (r *Request) Has(field string) bool { return r.Doc.Find(field) != nil }

// HasTools reports whether the client sent tools.
func (r *Request) HasTools() bool {
	for range rawjson.Elements(r.Doc.Raw("tools")) {
		return true
	}
	return false
}

// Size returns the size of the body in bytes.
func (r *Request) Size() int64 { return int64(len(r.Doc.Body)) }

// Model returns the model id sent by the client. It returns model_not_found if the id is absent or not a
// string.
func (r *Request) Model() (string, error) { return Model(r.Doc) }

// Model is Request.Model for any body.
func Model(d *rawjson.RequestBody) (string, error) {
	raw := d.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.ModelNotFound, "model", "Name the model in `{param}`, as a string. GET /v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Estimate returns a rough token count of the prompt without reading it.
func (r *Request) Estimate() int64 { return max(r.Bound.TextBytes, 0)/bytesPerToken + perPrompt }

// Tokens added by the chat-completions form to the text itself.
const (
	perMessage = 4
	perPrompt  = 3
)

// PromptTokens returns the gateway's token count of a prompt: its text, its messages, and perImage
// for each image.
func (r *Request) PromptTokens(c *wire.Counter, text *Output, messages int, perImage int64) int64 {
	tokens := int64(perPrompt+perMessage*messages) + text.Completion(c)
	tokens += min(r.Bound.Images, rawjson.MaxCount>>20) * min(max(perImage, 0), 1<<20)
	return min(tokens, rawjson.MaxCount)
}
