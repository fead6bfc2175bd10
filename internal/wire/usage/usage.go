// Package usage owns the reading of usage from any document of a provider, by
// the form that it is in: answers, and errors that were counted.
//
// Invariant: whatever the bytes, parts are within their wholes and no count is
// negative.
package usage

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/gemini"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
)

// Reported reads the usage that a document of a provider shows at its top
// level, in the given form, also beside an error; an empty form is any but
// messages. Counts that it does not tell are 0. Any bytes may be given.
func Reported(form wire.Form, document []byte) wire.Usage {
	object := document[rawjson.SkipSpace(document, 0):]
	switch form {
	case wire.FormMessages:
		return messages.ReportedUsage(object)
	case wire.FormResponses:
		return responses.ReportedUsage(object)
	}
	return gemini.ReportedUsage(object)
}
