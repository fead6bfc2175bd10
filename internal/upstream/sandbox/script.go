package sandbox

import (
	"encoding/json"

	"tollgate/internal/wire"
)

// script is an answer worded in one of the chat forms.
type script interface {
	// whole is the body of a plain answer.
	whole() []byte
	// steps lists what a stream says, in order.
	steps() []step
	// frame renders a step as the n-th event of the stream, from 0; nothing
	// for a step that nobody sees.
	frame(s step, n int) []byte
}

// step is one event of a stream before it is rendered.
type step struct {
	event string // what it is, in the form's own words; empty: nothing that is seen
	pace  pace
	at    int    // the choice, block or item that it belongs to
	text  string // what it adds
}

// pace says how a step counts for the options that are about time and trouble.
type pace int

const (
	paceNone    pace = iota
	paceOpening      // comes at once, also in a stream that breaks or stalls at 0 tokens
	paceBegins       // opens a part of the answer, or its end: no token, but it waits like the first one
	paceToken        // carries something that the model produced
)

// stepError is the step that tells an error in place of the rest, in any form.
const stepError = "error"

// script words an answer in the form of its request.
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

// named renders an event with its name, as the responses and the messages form
// have it.
func named(name string, body any) []byte {
	data := encode(body)
	out := make([]byte, 0, len(name)+len(data)+16)
	out = append(out, "event: "...)
	out = append(out, name...)
	out = append(out, "\ndata: "...)
	out = append(out, data...)
	return append(out, "\n\n"...)
}

// encode writes a body. Bodies hold strings, numbers and JSON that was found
// valid, so it cannot fail.
func encode(body any) []byte {
	out, _ := json.Marshal(body)
	return out
}
