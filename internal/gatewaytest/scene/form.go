package scene

import "encoding/json"

// Form is a wire form of clients.
type Form string

// The forms of clients, with their names in the catalog.
const (
	Chat      Form = "chat"
	Responses Form = "responses"
	Messages  Form = "messages"
	Gemini    Form = "gemini"
)

// Path returns the endpoint of the form.
func (f Form) Path() string {
	switch f {
	case Responses:
		return "/v1/responses"
	case Messages:
		return "/native/v1/messages"
	}
	return "/v1/chat/completions"
}

// ClientForms returns the forms with one path and the model in the body: all but Gemini.
func ClientForms() []Form { return []Form{Chat, Responses, Messages} }

// Request returns a request in a form, with the members of more. A nil value deletes a member.
func Request(form Form, model string, stream bool, more map[string]any) string {
	members := map[string]any{"model": model, "stream": stream}
	switch form {
	case Responses:
		members["input"], members["max_output_tokens"] = "hi", 500
	default:
		members["messages"], members["max_tokens"] = []any{map[string]any{"role": "user", "content": "hi"}}, 500
	}
	for k, v := range more {
		if members[k] = v; v == nil {
			delete(members, k)
		}
	}
	out, _ := json.Marshal(members) // cannot fail
	return string(out)
}
