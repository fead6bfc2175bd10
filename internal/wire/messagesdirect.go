package wire

// messagesDirect passes requests and answers of the form through.
type messagesDirect struct {
	*MessagesRequest
	id Identity
}

// Events implements Pair.
func (r messagesDirect) Events() (Meter, Writer) {
	return NewMessagesMeter(), newMessagesEditor(r.id)
}

// Read implements Pair.
func (r messagesDirect) Read(raw []byte) (Answer, error) { return ReadMessagesAnswer(raw) }

// Render implements Pair.
func (r messagesDirect) Render(a Answer, _ []byte, _ Usage) ([3][]byte, error) {
	return a.(*MessagesAnswer).pieces(r.id.Model), nil
}

// Body implements Pair.
func (r messagesDirect) Body(t Translation) ([]byte, error) {
	return r.MessagesRequest.Body(t.Edits), nil
}

// Direct is how the request meets a line of its own form.
func (r *MessagesRequest) Direct(id Identity) Pair { return messagesDirect{r, id} }
