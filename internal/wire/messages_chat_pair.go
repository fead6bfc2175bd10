package wire

// MessagesToChat is how a request of messages meets a line of chat completions.
func MessagesToChat(r *MessagesRequest, id Identity) Pair { return messagesOnChat{r, id} }

// messagesOnChat puts messages to a line of chat completions.
type messagesOnChat struct {
	*MessagesRequest
	id Identity
}

// Events implements Pair.
func (r messagesOnChat) Events() (Meter, Writer) {
	return NewChatMeter(1), NewMessagesFromChat(r.id)
}

// Read implements Pair.
func (r messagesOnChat) Read(raw []byte) (Answer, error) { return ReadChatAnswer(raw) }

// Render implements Pair.
func (r messagesOnChat) Render(_ Answer, raw []byte, u Usage) ([3][]byte, error) {
	out, err := MessagesFromChat(raw, r.id, u)
	return [3][]byte{out}, err
}
