package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/translate/internal/piece"
)

// ToChat returns the pair for messages and a chat line.
func ToChat(r *messages.Request, id wire.Identity) wire.Pair { return messagesOnChat{r, id} }

// messagesOnChat is the pair for messages and a chat line.
type messagesOnChat struct {
	*messages.Request
	id wire.Identity
}

func (r messagesOnChat) Events() (wire.Meter, wire.Writer) {
	return completions.NewMeter(1), newMessagesStream(r.id)
}

func (r messagesOnChat) Read(raw []byte) (wire.Answer, error) { return completions.ReadAnswer(raw) }

func (r messagesOnChat) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := messagesAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}

// unsupported returns the error for a value unknown to the line's form.
func unsupported(param, format string, args ...any) error {
	return piece.Unsupported(param, format, args...)
}
