package chatmessages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/translate/internal/piece"
)

// ToChat returns the translation of a messages request for a line of the chat form.
func ToChat(r *messages.Request, id wire.Identity) wire.Pair { return messagesOnChat{r, id} }

// messagesOnChat implements wire.Pair for a messages client and a line of the chat form.
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

// unsupported returns the error for a value that the line's form does not have.
func unsupported(param, format string, args ...any) error {
	return piece.Unsupported(param, format, args...)
}
