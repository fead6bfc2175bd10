// Package responseschat owns the translation of responses into chat completions
// and back.
//
// Invariants: items open and close in order and every text is repeated whole when
// it ends; the last event carries the whole response; what is kept for it is
// bounded.
package responseschat

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/responses"
)

// New is how a request of responses meets a line of chat completions.
func New(r *responses.Request, id wire.Identity) wire.Pair { return responsesOnChat{r, id} }

// responsesOnChat puts responses to a line of chat completions.
type responsesOnChat struct {
	*responses.Request
	id wire.Identity
}

// Events implements Pair.
func (r responsesOnChat) Events() (wire.Meter, wire.Writer) {
	return completions.NewMeter(1), newStream(r.id, r.Request)
}

// Read implements Pair.
func (r responsesOnChat) Read(raw []byte) (wire.Answer, error) { return completions.ReadAnswer(raw) }

// Render implements Pair.
func (r responsesOnChat) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := wholeAnswer(raw, r.id, u, r.Request)
	return [3][]byte{out}, err
}
