// Package chatmessages owns the translations between chat completions and messages: messages*.go
// translate a chat request for a messages line, chat*.go a messages request for a chat line.
//
// Invariants: texts and numbers are copied unchanged, so that equal requests give equal bytes; the
// client's stream is well formed whatever the provider sends; pending output is bounded.
package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
)

// ToMessages returns the pair for chat completions and a messages line.
func ToMessages(r *completions.Request, id wire.Identity) wire.Pair { return chatOnMessages{r, id} }

// chatOnMessages is the pair for chat completions and a messages line.
type chatOnMessages struct {
	*completions.Request
	id wire.Identity
}

func (r chatOnMessages) Events() (wire.Meter, wire.Writer) {
	return messages.NewMeter(), newChatStream(r.id, r.IncludeUsage)
}

func (r chatOnMessages) Read(raw []byte) (wire.Answer, error) { return messages.ReadAnswer(raw) }

func (r chatOnMessages) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := chatAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}
