package messages

import (
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the model and what is left of several limits. The result is
// the client's body itself when nothing changes; nobody may write to it.
func (r *Request) Body(e wire.Edits) []byte {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", e.Model)
	r.SetLimit(&edits, "max_tokens", r.Limit)
	return edits.Body()
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *Request) CountBody(e wire.Edits) []byte {
	edits := rawjson.Edits{Doc: r.Doc}
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
	limits := form.LimitFields()
	return slices.Contains(limits[:], name)
}
