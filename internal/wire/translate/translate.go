// Package translate owns the choice of the pair for a request and a line: direct if their forms are
// the same, a translator of the two forms if there is one, and otherwise two translators with chat
// completions in between. The translators of each pair have a package of their own.
//
// Invariants: only the meter of the line's form finds tokens, ends and errors, so no translation
// changes a charge; equal requests give equal bytes; a value unknown to the other form is rejected
// with the client's field, and never silently changed with an effect on the answer or its price.
package translate

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/chatgemini"
	"tollgate/internal/wire/translate/internal/customtools"
	"tollgate/internal/wire/translate/internal/responseschat"
)

// Translates reports whether a request of a client's form can be translated for a line of another
// form, and the answer back.
func Translates(client, line wire.Form) bool {
	switch client {
	case wire.FormChat:
		return line == wire.FormMessages || line == wire.FormGemini || line == wire.FormResponses
	case wire.FormResponses, wire.FormMessages:
		return line == wire.FormChat || line != client && Translates(wire.FormChat, line)
	}
	return false
}

// New returns the pair for a request and a line of a form. The form must be the request's own or
// satisfy Translates.
func New(r wire.Request, form wire.Form, id wire.Identity) wire.Pair {
	switch r := r.(type) {
	case *completions.Request:
		return chatOn(r, form, id)
	case *messages.Request:
		switch form {
		case wire.FormMessages:
		case wire.FormResponses:
			return newPair(r, form, id)
		default:
			return viaChat(newPair(r, wire.FormChat, id), wire.FormMessages, form, id)
		}
	case *responses.Request:
		if form != wire.FormResponses {
			return viaChat(responseschat.New(r, id), wire.FormResponses, form, id)
		}
	}
	return r.Direct(id)
}

// chatOn returns the pair for chat completions and a line.
func chatOn(r *completions.Request, form wire.Form, id wire.Identity) wire.Pair {
	if (form == wire.FormChat || form == wire.FormGemini) && r.Doc != nil && customtools.Has(r) {
		on := func(r *completions.Request) wire.Pair { return functionsOn(r, form, id) }
		return customtools.New(r, on, form == wire.FormChat)
	}
	return functionsOn(r, form, id)
}

// functionsOn is chatOn for a request without custom tools, or a line with them.
func functionsOn(r *completions.Request, form wire.Form, id wire.Identity) wire.Pair {
	switch form {
	case wire.FormMessages:
		return newPair(r, form, id)
	case wire.FormGemini:
		return chatgemini.New(r, id)
	case wire.FormResponses:
		return newPair(r, form, id)
	}
	return r.Direct(id)
}

// LeastLimit returns the smallest limit on output tokens for a line of a form and a client of
// another. Smaller limits are raised to it.
func LeastLimit(client, line wire.Form) int64 {
	if line == wire.FormResponses && client != line {
		return wire.LeastResponsesLimit
	}
	return 1
}
