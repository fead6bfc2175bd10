package wire

// chatDirect passes requests and answers of the form through.
type chatDirect struct {
	*ChatRequest
	id Identity
}

// Events implements Pair.
func (r chatDirect) Events() (Meter, Writer) {
	m := newChatMeter(r.N)
	return m, newChatEditor(r.id, r.IncludeUsage, m)
}

// Read implements Pair.
func (r chatDirect) Read(raw []byte) (Answer, error) { return ReadChatAnswer(raw) }

// Render implements Pair.
func (r chatDirect) Render(a Answer, _ []byte, _ Usage) ([3][]byte, error) {
	return a.(*ChatAnswer).pieces(r.id.Model), nil
}

// Body implements Pair.
func (r chatDirect) Body(t Translation) ([]byte, error) { return r.ChatRequest.Body(t.Edits), nil }

// Direct is how the request meets a line of its own form.
func (r *ChatRequest) Direct(id Identity) Pair { return chatDirect{r, id} }
