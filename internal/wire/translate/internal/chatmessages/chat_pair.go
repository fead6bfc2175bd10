package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/translate/internal/piece"
)

// ToChat is how a request of messages meets a line of chat completions.
func ToChat(r *messages.Request, id wire.Identity) wire.Pair { return messagesOnChat{r, id} }

// messagesOnChat puts messages to a line of chat completions.
type messagesOnChat struct {
	*messages.Request
	id wire.Identity
}

// Events implements Pair.
func (r messagesOnChat) Events() (wire.Meter, wire.Writer) {
	return completions.NewMeter(1), newMessagesStream(r.id)
}

// Read implements Pair.
func (r messagesOnChat) Read(raw []byte) (wire.Answer, error) { return completions.ReadAnswer(raw) }

// Render implements Pair.
func (r messagesOnChat) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := messagesAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}

// unsupported refuses what a line of another form has no word for.
func unsupported(param, format string, args ...any) error {
	return piece.Unsupported(param, format, args...)
}
