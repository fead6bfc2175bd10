package sandbox

import (
	"encoding/json"

	"tollgate/internal/wire"
)

// script is an answer in one of the chat forms.
type script interface {
	// whole returns the body of a plain answer.
	whole() []byte
	// steps lists the events of a stream in order.
	steps() []step
	// frame renders a step as the n-th event of the stream, from 0. It returns
	// nothing for a step without an event.
	frame(s step, n int) []byte
}

// step is one event of a stream before it is rendered.
type step struct {
	event string // the form's name of the event, or "" for a step without an event
	pace  pace
	at    int    // the index of its choice, block or item
	text  string // the added text
}

// pace classifies a step for the options about time and failures.
type pace int

const (
	paceNone    pace = iota
	paceOpening      // has no delay, even if the stream breaks or stalls at 0 tokens
	paceBegins       // opens or ends a part of the answer: no token, but with the delay of the first token
	paceToken        // carries a token of the model
)

// stepError is the event of a step with an error instead of the rest, in any form.
const stepError = "error"

// script returns an answer in the form of its request.
func (r request) script(a answer) script {
	switch r.form {
	case wire.FormResponses:
		return newResponsesScript(a, r)
	case wire.FormMessages:
		return messagesScript{a, r.hideThinking}
	default:
		return chatScript{a, r.includeUsage}
	}
}

// namedEvent renders an event with its name (responses and messages form).
func namedEvent(name string, body any) []byte {
	data := encode(body)
	out := make([]byte, 0, len(name)+len(data)+16)
	out = append(out, "event: "...)
	out = append(out, name...)
	out = append(out, "\ndata: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// encode writes a body. It cannot fail: bodies hold strings, numbers and valid JSON.
func encode(body any) []byte {
	out, _ := json.Marshal(body)
	return out
}
