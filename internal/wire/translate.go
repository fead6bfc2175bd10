package wire

// Translates tells whether a request of a client's form can be put into a
// line's other form, and the answer back. What has no translator of its own
// goes by way of chat completions (Chain).
func Translates(client, line Form) bool {
	switch client {
	case FormChat:
		return line == FormMessages || line == FormGemini
	case FormResponses, FormMessages:
		return line == FormChat || line != client && Translates(FormChat, line)
	}
	return false
}

// Identity is what the client sees as the source of its answer.
type Identity struct {
	// Request is our id of the request (`req_…`). Ids that a translator has to
	// make derive from it, so that the same answer always looks the same.
	Request string
	// Model is the id that the client sent.
	Model string
	// Created is when the answer began, in Unix seconds.
	Created int64
}

// Translation is what a request needs to become one of another form.
type Translation struct {
	Edits
	// MaxOutput is the model's max_output_tokens: it is sent where the form
	// demands a limit and the client named none.
	MaxOutput int64
	// Reasoning tells that the model thinks.
	Reasoning bool
}
