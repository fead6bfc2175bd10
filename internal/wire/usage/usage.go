// Package usage owns the reading of usage from any document of a provider: an answer, or an error with usage.
//
// Invariant: whatever the bytes, parts never exceed their wholes and no count is negative.
package usage

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/interactions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
)

// Read returns the usage at the top level of a document in the given form, even if the document also has an error.
// An empty form is any form except messages. Missing counts are 0. The document may be any bytes.
func Read(form wire.Form, document []byte) wire.Usage {
	object := document[rawjson.SkipSpace(document, 0):]
	switch form {
	case wire.FormMessages:
		return messages.ReportedUsage(object)
	case wire.FormResponses:
		return responses.ReportedUsage(object)
	case wire.FormInteractions:
		return interactions.ReportedUsage(object)
	}
	return gemini.ReportedUsage(object)
}
