package wire

import (
	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// MessagesRequest is a body of the native messages form that passed the gate.
// What it asks for is set by Check; until then it is zero.
type MessagesRequest struct {
	request
}

// OpenMessages passes a messages body through the gate, as OpenChat does. The
// request keeps body; nobody may change it afterwards.
func OpenMessages(body []byte) (*MessagesRequest, error) {
	r, err := openRequest(body)
	if err != nil {
		return nil, err
	}
	return &MessagesRequest{r}, nil
}

// Model returns the model's id as the client sent it; invalid_request when it
// is absent or not a string.
func (r *MessagesRequest) Model() (string, error) {
	raw := r.doc.Raw("model")
	if !rawjson.IsText(raw) || len(raw) == 2 {
		return "", fault.At(fault.InvalidRequest, "model", "Name the model in `model`, as a string. GET /native/v1/models lists the models.")
	}
	return rawjson.Unquote(raw), nil
}

// Prompt returns our own count of the prompt's tokens: system, messages and
// tools, with perImage for each image.
func (r *MessagesRequest) Prompt(c *Counter, perImage int64) int64 {
	var text produced
	messages := 0
	if system := r.doc.Raw("system"); system != nil {
		messages++
		text.take(system, 0)
	}
	for _, message := range rawjson.Elements(r.doc.Raw("messages")) {
		messages++
		text.note(message)
		for _, block := range rawjson.Elements(rawjson.Field(message, "content")) {
			if source := rawjson.Field(block, "source"); rawjson.Unquote(rawjson.Field(source, "type")) == "text" {
				text.take(rawjson.Field(source, "data"), 0)
			}
		}
	}
	if tools := r.doc.Raw("tools"); tools != nil {
		text.add(tools)
	}
	return r.promptTokens(c, &text, messages, perImage)
}
