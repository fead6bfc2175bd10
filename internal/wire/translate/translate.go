// Package translate owns the choice of how two forms meet: New puts together a
// request and a line, passing through where their forms are one, by the pair's
// translator where there is one, and else by way of chat completions. A pair's
// translators stand in a folder of their own.
//
// Invariants: the meter of the line's form alone decides about tokens, ends and
// errors, so that no translation changes a charge; equal requests give equal
// bytes; what a form has no word for is refused with the client's field, never
// silently changed where it would change the answer or its price.
package translate

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/chatgemini"
	"tollgate/internal/wire/translate/internal/chatmessages"
	"tollgate/internal/wire/translate/internal/chatresponses"
	"tollgate/internal/wire/translate/internal/customtools"
	"tollgate/internal/wire/translate/internal/messagesresponses"
	"tollgate/internal/wire/translate/internal/responseschat"
)

// Translates tells whether a request of a client's form can be put into a
// line's other form, and the answer back. What has no translator of its own
// goes by way of chat completions (chain).
func Translates(client, line wire.Form) bool {
	switch client {
	case wire.FormChat:
		return line == wire.FormMessages || line == wire.FormGemini || line == wire.FormResponses
	case wire.FormResponses, wire.FormMessages:
		return line == wire.FormChat || line != client && Translates(wire.FormChat, line)
	}
	return false
}

// New returns how a request meets a line of a form, which its form Translates
// to or is.
func New(r wire.Request, form wire.Form, id wire.Identity) wire.Pair {
	switch r := r.(type) {
	case *completions.Request:
		return chatOn(r, form, id)
	case *messages.Request:
		switch form {
		case wire.FormMessages:
		case wire.FormResponses:
			return messagesresponses.New(r, id)
		default:
			return byChat(chatmessages.ToChat(r, id), wire.FormMessages, form, id)
		}
	case *responses.Request:
		if form != wire.FormResponses {
			return byChat(responseschat.New(r, id), wire.FormResponses, form, id)
		}
	}
	return r.Direct(id)
}

// chatOn is how chat completions meet a line.
func chatOn(r *completions.Request, form wire.Form, id wire.Identity) wire.Pair {
	if r.Doc != nil && customtools.Has(r) {
		on := func(r *completions.Request) wire.Pair { return functionsOn(r, form, id) }
		return customtools.New(r, on, form == wire.FormChat || form == wire.FormResponses)
	}
	return functionsOn(r, form, id)
}

// functionsOn is chatOn of a request without custom tools, or on a line that has
// them.
func functionsOn(r *completions.Request, form wire.Form, id wire.Identity) wire.Pair {
	switch form {
	case wire.FormMessages:
		return chatmessages.ToMessages(r, id)
	case wire.FormGemini:
		return chatgemini.New(r, id)
	case wire.FormResponses:
		return chatresponses.New(r, id)
	}
	return r.Direct(id)
}

// LeastLimit is the smallest limit on output tokens that a line of a form gets
// from a client of another: a smaller one is raised to it.
func LeastLimit(client, line wire.Form) int64 {
	if line == wire.FormResponses && client != line {
		return wire.LeastResponsesLimit
	}
	return 1
}
