package wire

// ResponsesToChat is how a request of responses meets a line of chat completions.
func ResponsesToChat(r *ResponsesRequest, id Identity) Pair { return responsesOnChat{r, id} }

// responsesOnChat puts responses to a line of chat completions.
type responsesOnChat struct {
	*ResponsesRequest
	id Identity
}

// Events implements Pair.
func (r responsesOnChat) Events() (Meter, Writer) {
	return NewChatMeter(1), NewResponsesFromChat(r.id, r.ResponsesRequest)
}

// Read implements Pair.
func (r responsesOnChat) Read(raw []byte) (Answer, error) { return ReadChatAnswer(raw) }

// Render implements Pair.
func (r responsesOnChat) Render(_ Answer, raw []byte, u Usage) ([3][]byte, error) {
	out, err := ResponsesFromChat(raw, r.id, u, r.ResponsesRequest)
	return [3][]byte{out}, err
}
