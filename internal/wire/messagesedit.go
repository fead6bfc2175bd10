package wire

import (
	"slices"

	"tollgate/internal/wire/rawjson"
)

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the model and what is left of several limits. The result is
// the client's body itself when nothing changes; nobody may write to it.
func (r *MessagesRequest) Body(e Edits) []byte {
	edits := rawjson.Edits{Doc: r.doc}
	edits.SetText("model", e.Model)
	r.setLimit(&edits, "max_tokens", r.Limit)
	return edits.Body()
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *MessagesRequest) CountBody(e Edits) []byte {
	edits := rawjson.Edits{Doc: r.doc}
	if r.doc.Find("model") != nil {
		edits.SetText("model", e.Model)
	}
	for _, m := range r.doc.Members {
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
	limits := limitNames()
	return slices.Contains(limits[:], name)
}
