package messages

import (
	"bytes"
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the model, what is left of several limits, what a line of
// responses has sealed, which no other takes, and an end user whose name is an
// e-mail address, which providers refuse. The result is the client's body itself
// when nothing changes; nobody may write to it.
func (r *Request) Body(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", e.Model)
	edits.Drop(e.Omit...)
	r.Unsealed(&edits, "content", true)
	r.SetLimit(&edits, "max_tokens", r.Limit)
	r.hideUser(&edits)
	r.SetEffort(&edits, "output_config", e)
	return edits.Body()
}

// hideUser takes the e-mail address out of metadata.user_id.
func (r *Request) hideUser(edits *rawjson.Edits) {
	metadata := r.Doc.Find("metadata")
	if metadata == nil {
		return
	}
	object := r.Doc.Body[metadata.From:metadata.To]
	for m := range rawjson.Spans(object) {
		if value := object[m.From:m.To]; string(m.Name) == "user_id" && rawjson.IsText(value) {
			if hidden := form.EndUser(value); !bytes.Equal(hidden, value) {
				edits.Splices = append(edits.Splices, rawjson.Splice{From: metadata.From + m.From, To: metadata.From + m.To, Text: hidden})
			}
		}
	}
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *Request) CountBody(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.Drop(e.Omit...)
	r.Unsealed(&edits, "content", true)
	if r.Doc.Find("model") != nil {
		edits.SetText("model", e.Model)
	}
	for _, m := range r.Doc.Members {
		if isNotCounted(string(m.Name)) {
			edits.Drop(string(m.Name))
		}
	}
	return edits.Body()
}

// isNotCounted tells whether a member of requests is refused by counts.
func isNotCounted(name string) bool {
	switch name {
	case "stream", "metadata", "stop_sequences", "temperature", "top_p", "top_k", "service_tier", "inference_geo":
		return true
	}
	return slices.Contains(form.LimitFields(), name)
}
