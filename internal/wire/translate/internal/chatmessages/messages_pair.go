// Package chatmessages owns the translations between chat completions and
// messages, in both directions: messages*.go put a chat request to a line of
// messages, chat*.go a messages request to a line of chat completions.
//
// Invariants: texts and numbers are copied as they stand, so that equal requests
// give equal bytes; the client's stream is well formed whatever the provider
// sends; what waits in memory is bounded.
package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
)

// ToMessages is how a request of chat completions meets a line of messages.
func ToMessages(r *completions.Request, id wire.Identity) wire.Pair { return chatOnMessages{r, id} }

// chatOnMessages puts chat completions to a line of messages.
type chatOnMessages struct {
	*completions.Request
	id wire.Identity
}

// Events implements Pair.
func (r chatOnMessages) Events() (wire.Meter, wire.Writer) {
	return messages.NewMeter(), newChatStream(r.id, r.IncludeUsage)
}

// Read implements Pair.
func (r chatOnMessages) Read(raw []byte) (wire.Answer, error) { return messages.ReadAnswer(raw) }

// Render implements Pair.
func (r chatOnMessages) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := chatAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}
