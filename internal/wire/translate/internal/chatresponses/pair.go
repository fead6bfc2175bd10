// Package chatresponses owns the translation of chat completions into the
// responses form and back.
//
// Invariants: texts and numbers are copied as they stand, so that equal requests
// give equal bytes; the client's stream is well formed whatever the provider
// sends.
package chatresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/item"
)

// New is how a request of chat completions meets a line of responses.
func New(r *completions.Request, id wire.Identity) wire.Pair { return chatOnResponses{r, id} }

// chatOnResponses puts chat completions to a line of responses.
type chatOnResponses struct {
	*completions.Request
	id wire.Identity
}

// Events implements Pair.
func (r chatOnResponses) Events() (wire.Meter, wire.Writer) {
	return responses.NewMeter(), newStream(r)
}

// Read implements Pair.
func (r chatOnResponses) Read(raw []byte) (wire.Answer, error) { return responses.ReadAnswer(raw) }

// Render implements Pair.
func (r chatOnResponses) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := r.wholeAnswer(raw, u)
	return [3][]byte{out}, err
}

// asksJSON tells whether the answer has to be JSON: then it is one message.
func (r chatOnResponses) asksJSON() bool {
	kind := rawjson.Unquote(rawjson.Field(r.raw("response_format"), "type"))
	return kind == "json_object" || kind == "json_schema"
}

// asksLogprobs tells whether the client asked for them.
func (r chatOnResponses) asksLogprobs() bool { return string(r.raw("logprobs")) == "true" }

// raw is a field of the request, which has none where there is only its answer.
func (r chatOnResponses) raw(name string) []byte {
	if r.Doc == nil {
		return nil
	}
	return r.Doc.Raw(name)
}

// names are the tools that the line knows by other names.
func (r chatOnResponses) names() item.Names {
	names := item.Names{}
	for _, tool := range rawjson.Elements(r.raw("tools")) {
		for _, kind := range [...]string{"function", "custom"} {
			if name := rawjson.Field(rawjson.Field(tool, kind), "name"); name != nil {
				names.Declare(name)
			}
		}
	}
	for _, function := range rawjson.Elements(r.raw("functions")) {
		names.Declare(rawjson.Field(function, "name"))
	}
	return names
}
