package wire

import (
	"tollgate/internal/wire/rawjson"
)

// ChatRequest is a chat-completions body that passed the gate. What it asks
// for is set by Check; until then it is zero.
type ChatRequest struct {
	request
}

// OpenChat passes a chat-completions body through the gate. It answers
// invalid_encoding, invalid_json (also for keys repeated in any object) or
// invalid_request (not an object, too many keys). The request keeps body; nobody
// may change it afterwards.
func OpenChat(body []byte) (*ChatRequest, error) {
	r, err := openRequest(body)
	if err != nil {
		return nil, err
	}
	return &ChatRequest{r}, nil
}

// Prompt returns our own count of the prompt's tokens: its messages and tools,
// with perImage for each image.
func (r *ChatRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	messages := 0
	for _, message := range rawjson.Elements(r.doc.Raw("messages")) {
		messages++
		text.note(message)
	}
	for _, name := range []string{"tools", "functions", "response_format"} {
		if raw := r.doc.Raw(name); raw != nil {
			text.add(raw)
		}
	}
	return r.promptTokens(c, &text, messages, perImage)
}
