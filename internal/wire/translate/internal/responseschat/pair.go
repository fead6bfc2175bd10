// Package responseschat owns the translation of responses to chat completions and back.
//
// Invariants:
//   - Items begin and end in order.
//   - The event at the end of a text repeats the whole text.
//   - The last event has the whole response. The memory for the response is bounded.
package responseschat

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/responses"
)

// New returns the pair that serves a responses request with a chat line.
func New(r *responses.Request, id wire.Identity) wire.Pair { return responsesOnChat{r, id} }

// responsesOnChat serves a responses request with a chat line.
type responsesOnChat struct {
	*responses.Request
	id wire.Identity
}

func (r responsesOnChat) Events() (wire.Meter, wire.Writer) {
	return completions.NewMeter(1), newStream(r.id, r.Request)
}

func (r responsesOnChat) Read(raw []byte) (wire.Answer, error) { return completions.ReadAnswer(raw) }

func (r responsesOnChat) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := wholeAnswer(raw, r.id, u, r.Request)
	return [3][]byte{out}, err
}
