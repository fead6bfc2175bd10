// Package messagesresponses owns the translation of messages into the responses
// form and back.
//
// Invariants: texts and numbers are copied as they stand, so that equal requests
// give equal bytes; the client's stream is well formed whatever the provider
// sends; what waits in memory is bounded.
package messagesresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/item"
)

// New is how a request of messages meets a line of responses.
func New(r *messages.Request, id wire.Identity) wire.Pair { return messagesOnResponses{r, id} }

// messagesOnResponses puts messages to a line of responses.
type messagesOnResponses struct {
	*messages.Request
	id wire.Identity
}

// Events implements Pair.
func (r messagesOnResponses) Events() (wire.Meter, wire.Writer) {
	return responses.NewMeter(), newStream(r.id, r.names())
}

// Read implements Pair.
func (r messagesOnResponses) Read(raw []byte) (wire.Answer, error) { return responses.ReadAnswer(raw) }

// Render implements Pair.
func (r messagesOnResponses) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := r.wholeAnswer(raw, u)
	return [3][]byte{out}, err
}

// names are the tools that the line knows by other names.
func (r messagesOnResponses) names() item.Names {
	names := item.Names{}
	if r.Doc == nil { // there is only its answer
		return names
	}
	for _, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		names.Declare(rawjson.Field(tool, "name"))
	}
	return names
}
