package messages

import (
	"bytes"
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// Body returns the body for a line: the client's bytes except for the model, the limit, an unsupported
// effort, state sealed for other accounts, and an e-mail address as the name of the end user, because
// providers reject such names. The result must not be modified; it is the client's body itself if nothing
// changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", e.Model)
	edits.Drop(e.Omit...)
	r.editState(&edits, e)
	r.SetLimit(&edits, "max_tokens", r.Limit)
	r.hideUser(&edits)
	r.SetEffort(&edits, "output_config", e)
	return edits.Body()
}

// editState opens the state of the line's account, and removes the state of other accounts and the state in
// ids of calls. If the line requires signatures, it also removes thinking without a signature. With
// Edits.NoSealed, it removes all thinking. A message without remaining blocks is removed.
func (r *Request) editState(edits *rawjson.Edits, e wire.Edits) {
	signs := (e.Signs || e.NoSealed || generationOf(e.Model).number > 0) && bytes.Contains(r.Doc.Body, []byte(`thinking"`))
	if !signs && !r.Doc.HasPrefix() {
		return
	}
	r.EditMessages(edits, func(message []byte) []byte {
		emptied := false
		message = form.EditMember(message, "content", func(content []byte) []byte {
			out, changed := form.EditElements(content, func(block []byte) []byte { return editBlock(block, e, signs) })
			emptied = changed && string(out) == "[]"
			return out
		})
		if emptied {
			return nil
		}
		return message
	})
}

// editBlock returns a block for a line, or nil. signs is set if the line requires signatures.
func editBlock(block []byte, e wire.Edits, signs bool) []byte {
	switch rawjson.Unquote(rawjson.Field(block, "type")) {
	case "thinking":
		if e.NoSealed || signs && conversation.IsBlank(rawjson.Contents(rawjson.Field(block, "signature"))) {
			return nil
		}
		return form.OpenSealed(block, e.Origin, "signature")
	case "redacted_thinking":
		if e.NoSealed || signs && conversation.IsBlank(rawjson.Contents(rawjson.Field(block, "data"))) {
			return nil
		}
		return form.OpenSealed(block, e.Origin, "data")
	case "tool_use":
		return withOwnID(block, "id")
	case "tool_result":
		return withOwnID(block, "tool_use_id")
	}
	return block
}

// withOwnID returns a block with the call's own id in a member, without state.
func withOwnID(block []byte, member string) []byte {
	id := rawjson.Unquote(rawjson.Field(block, member))
	if own, _ := conversation.OpenID(id); own != id {
		return form.WithMember(block, member, rawjson.Quote(own))
	}
	return block
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
	r.editState(&edits, e)
	if r.Doc.Find("model") != nil {
		edits.SetText("model", e.Model)
	}
	for _, m := range r.Doc.Members {
		if isRejectedByCount(string(m.Name)) {
			edits.Drop(string(m.Name))
		}
	}
	return form.CorrectMedia(edits.Body(), r.Doc)
}

// isRejectedByCount reports whether count requests must not have a member of that name.
func isRejectedByCount(name string) bool {
	switch name {
	case "stream", "metadata", "stop_sequences", "temperature", "top_p", "top_k", "service_tier", "inference_geo":
		return true
	}
	return slices.Contains(form.LimitFields(), name)
}
