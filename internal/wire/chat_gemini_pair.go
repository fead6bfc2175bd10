package wire

// ToGemini is how a request of chat completions meets a line of Gemini.
func ToGemini(r *ChatRequest, id Identity) Pair { return chatOnGemini{r, id} }

// chatOnGemini puts chat completions to a line of Gemini.
type chatOnGemini struct {
	*ChatRequest
	id Identity
}

// Events implements Pair.
func (r chatOnGemini) Events() (Meter, Writer) {
	return NewGeminiMeter(r.N), NewChatFromGemini(r.id, r.IncludeUsage)
}

// Read implements Pair.
func (r chatOnGemini) Read(raw []byte) (Answer, error) { return ReadGeminiAnswer(raw) }

// Render implements Pair.
func (r chatOnGemini) Render(_ Answer, raw []byte, u Usage) ([3][]byte, error) {
	out, err := ChatFromGemini(raw, r.id, u)
	return [3][]byte{out}, err
}
