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

// New returns how a request meets a line of a form, which its form Translates
// to or is.
func New(r Request, form Form, id Identity) Pair {
	switch r := r.(type) {
	case *ChatRequest:
		return chatOn(r, form, id)
	case *MessagesRequest:
		if form != FormMessages {
			return byChat(MessagesToChat(r, id), FormMessages, form, id)
		}
	case *ResponsesRequest:
		if form != FormResponses {
			return byChat(ResponsesToChat(r, id), FormResponses, form, id)
		}
	}
	return r.Direct(id)
}

// chatOn is how chat completions meet a line.
func chatOn(r *ChatRequest, form Form, id Identity) Pair {
	switch form {
	case FormMessages:
		return ToMessages(r, id)
	case FormGemini:
		return ToGemini(r, id)
	}
	return r.Direct(id)
}
