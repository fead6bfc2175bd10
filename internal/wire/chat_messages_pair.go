package wire

// ToMessages is how a request of chat completions meets a line of messages.
func ToMessages(r *ChatRequest, id Identity) Pair { return chatOnMessages{r, id} }

// chatOnMessages puts chat completions to a line of messages.
type chatOnMessages struct {
	*ChatRequest
	id Identity
}

// Events implements Pair.
func (r chatOnMessages) Events() (Meter, Writer) {
	return NewMessagesMeter(), NewChatFromMessages(r.id, r.IncludeUsage)
}

// Read implements Pair.
func (r chatOnMessages) Read(raw []byte) (Answer, error) { return ReadMessagesAnswer(raw) }

// Render implements Pair.
func (r chatOnMessages) Render(_ Answer, raw []byte, u Usage) ([3][]byte, error) {
	out, err := ChatFromMessages(raw, r.id, u)
	return [3][]byte{out}, err
}
