package wire

import (
	"tollgate/internal/wire/rawjson"
)

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

// ReportedUsage reads the usage that a document of a provider shows at its top
// level, in the given form, also beside an error; an empty form is any but
// messages. Counts that it does not tell are 0. Any bytes may be given.
func ReportedUsage(form Form, document []byte) Usage {
	object := document[rawjson.SkipSpace(document, 0):]
	switch form {
	case FormMessages:
		return messagesReported(object)
	case FormResponses:
		return responsesReported(object)
	}
	return geminiReported(object)
}
