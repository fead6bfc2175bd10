// Package translate owns the choice of the pair for a request and a line: direct if their forms are
// the same, and otherwise the decoder and the writer of the client's form with the encoder and the
// reader of the line's (package conversation).
//
// Invariants: only the meter of the line's form finds tokens, ends and errors, so no translation
// changes a charge, except for a stream that no reader can read without a guess (wire.Writer.Err);
// equal requests give equal bytes; a value unknown to the other form is rejected with the client's
// field, and never silently changed with an effect on the answer or its price.
package translate

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/translate/internal/customtools"
)

// Translates reports whether a request of a client's form can be translated for a line of another
// form, and the answer back.
func Translates(client, line wire.Form) bool {
	return client != line && isClientForm(client) && (isClientForm(line) || line == wire.FormInteractions)
}

// isClientForm reports whether clients speak a form.
func isClientForm(form wire.Form) bool {
	switch form {
	case wire.FormChat, wire.FormResponses, wire.FormMessages, wire.FormGemini:
		return true
	}
	return false
}

// New returns the pair for a request and a line of a form. The form must be the request's own or
// satisfy Translates.
func New(r wire.Request, form wire.Form, id wire.Identity) wire.Pair {
	own := wire.FormChat
	switch r := r.(type) {
	case *completions.Request:
		if form == own && r.Doc != nil && customtools.Has(r) {
			return withSeals(customtools.New(r, id), own, id)
		}
	case *messages.Request:
		own = wire.FormMessages
	case *responses.Request:
		own = wire.FormResponses
	case *gemini.Request:
		own = wire.FormGemini
	}
	if r, ok := r.(client); ok && form != own {
		return newPair(r, form, id)
	}
	return withSeals(r.Direct(id), own, id)
}

// LeastLimit returns the smallest limit on output tokens for a line of a form and a client of
// another. Smaller limits are raised to it.
func LeastLimit(client, line wire.Form) int64 {
	if line == wire.FormResponses && client != line {
		return wire.LeastResponsesLimit
	}
	return 1
}
