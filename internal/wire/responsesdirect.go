package wire

// responsesDirect passes requests and answers of the form through.
type responsesDirect struct {
	*ResponsesRequest
	id Identity
}

// Events implements Pair.
func (r responsesDirect) Events() (Meter, Writer) {
	return NewResponsesMeter(), newResponsesEditor(r.id, r.ResponsesRequest)
}

// Read implements Pair.
func (r responsesDirect) Read(raw []byte) (Answer, error) { return ReadResponsesAnswer(raw) }

// Render implements Pair.
func (r responsesDirect) Render(a Answer, _ []byte, _ Usage) ([3][]byte, error) {
	return a.(*ResponsesAnswer).pieces(r.id.Model), nil
}

// Body implements Pair.
func (r responsesDirect) Body(t Translation) ([]byte, error) {
	return r.ResponsesRequest.Body(t.Edits), nil
}

// Direct is how the request meets a line of its own form.
func (r *ResponsesRequest) Direct(id Identity) Pair { return responsesDirect{r, id} }
