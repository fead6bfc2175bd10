package messages

import (
	"bytes"
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Body returns the body for a line: the client's bytes except for the model, one of several limits,
// state of lines of other forms, and an end user named by an e-mail address, which providers reject.
// The result must not be modified; it is the client's body itself if nothing changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", e.Model)
	edits.Drop(e.Omit...)
	r.RemoveSealed(&edits, "content", true, r.unsigned(e.Model))
	r.SetLimit(&edits, "max_tokens", r.Limit)
	r.hideUser(&edits)
	r.SetEffort(&edits, "output_config", e)
	return edits.Body()
}

// unsigned returns the predicate for thinking without a signature, made on a line of another form.
// Claude's models refuse it in every later turn. It returns nil if none is to be removed.
func (r *Request) unsigned(model string) func(block []byte) bool {
	if generationOf(model).number == 0 || !bytes.Contains(r.Doc.Body, []byte(`"thinking"`)) {
		return nil
	}
	return func(block []byte) bool {
		return string(rawjson.Field(block, "type")) == `"thinking"` && len(rawjson.Contents(rawjson.Field(block, "signature"))) == 0
	}
}

// hideUser replaces an e-mail address in metadata.user_id.
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

// CountBody is like Body for a line that only counts tokens. It omits the members rejected by count
// requests, none of which is part of the prompt.
func (r *Request) CountBody(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.Drop(e.Omit...)
	r.RemoveSealed(&edits, "content", true, r.unsigned(e.Model))
	if r.Doc.Find("model") != nil {
		edits.SetText("model", e.Model)
	}
	for _, m := range r.Doc.Members {
		if isRejectedByCount(string(m.Name)) {
			edits.Drop(string(m.Name))
		}
	}
	return edits.Body()
}

// isRejectedByCount reports whether count requests reject a member of requests.
func isRejectedByCount(name string) bool {
	switch name {
	case "stream", "metadata", "stop_sequences", "temperature", "top_p", "top_k", "service_tier", "inference_geo":
		return true
	}
	return slices.Contains(form.LimitFields(), name)
}
