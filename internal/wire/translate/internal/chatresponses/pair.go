// Package chatresponses owns the translation of chat completions to the responses form and back.
//
// Invariants: texts and numbers are copied unchanged, so that equal requests give equal bytes; the
// client's stream is well formed whatever the provider sends.
package chatresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/item"
)

// New returns the pair for chat completions and a responses line.
func New(r *completions.Request, id wire.Identity) wire.Pair { return chatOnResponses{r, id} }

// chatOnResponses is the pair for chat completions and a responses line.
type chatOnResponses struct {
	*completions.Request
	id wire.Identity
}

func (r chatOnResponses) Events() (wire.Meter, wire.Writer) {
	return responses.NewMeter(), newStream(r)
}

func (r chatOnResponses) Read(raw []byte) (wire.Answer, error) { return responses.ReadAnswer(raw) }

func (r chatOnResponses) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := r.wholeAnswer(raw, u)
	return [3][]byte{out}, err
}

// asksJSON reports whether the answer must be JSON, and so one message.
func (r chatOnResponses) asksJSON() bool {
	kind := rawjson.Unquote(rawjson.Field(r.raw("response_format"), "type"))
	return kind == "json_object" || kind == "json_schema"
}

func (r chatOnResponses) asksLogprobs() bool { return string(r.raw("logprobs")) == "true" }

// raw returns a field of the request. A pair for answers only has no body.
func (r chatOnResponses) raw(name string) []byte {
	if r.Doc == nil {
		return nil
	}
	return r.Doc.Raw(name)
}

// names returns the tools with other names on the line.
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
