package wire

import "slices"

// Body returns the bytes for a line: the client's own, in its own order and
// spacing, but for the model and what is left of several limits. The result is
// the client's body itself when nothing changes; nobody may write to it.
func (r *MessagesRequest) Body(e Edits) []byte {
	edits := memberEdits{doc: r.doc}
	edits.setText("model", e.Model)
	r.setLimit(&edits, "max_tokens", r.Limit)
	return edits.body()
}

// CountBody is Body for a line that only counts tokens: without the members
// that requests have and counts refuse. None of them is part of the prompt.
func (r *MessagesRequest) CountBody(e Edits) []byte {
	edits := memberEdits{doc: r.doc}
	if r.doc.find("model") != nil {
		edits.setText("model", e.Model)
	}
	for _, m := range r.doc.members {
		if isNotCounted(string(m.name)) {
			edits.drop(string(m.name))
		}
	}
	return edits.body()
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
