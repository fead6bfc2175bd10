// Package messagesresponses owns the translation of messages to the responses form and back.
//
// Invariants: texts and numbers are copied unchanged, so that equal requests give equal bytes; the
// client's stream is well formed whatever the provider sends; pending output is bounded.
package messagesresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/item"
)

// New returns the pair for a client of messages and a line of responses.
func New(r *messages.Request, id wire.Identity) wire.Pair { return messagesOnResponses{r, id} }

// messagesOnResponses is the pair for a client of messages and a line of responses.
type messagesOnResponses struct {
	*messages.Request
	id wire.Identity
}

func (r messagesOnResponses) Events() (wire.Meter, wire.Writer) {
	return responses.NewMeter(), newStream(r.id, r.names())
}

func (r messagesOnResponses) Read(raw []byte) (wire.Answer, error) { return responses.ReadAnswer(raw) }

func (r messagesOnResponses) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := r.wholeAnswer(raw, u)
	return [3][]byte{out}, err
}

// names returns the names of tools that differ between the client and the line.
func (r messagesOnResponses) names() item.Names {
	names := item.Names{}
	if r.Doc == nil { // a pair for answers only
		return names
	}
	for _, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		names.Declare(rawjson.Field(tool, "name"))
	}
	return names
}
