package gemini

import (
	"bytes"
	"strconv"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// textOnly is the value of responseModalities if the client sent none: some models make images unasked,
// at another price.
const textOnly = `["TEXT"]`

// Body returns the body for a line: the client's bytes except for the limit, the kinds of output, and
// signatures that the line cannot read. The model is in the URL. The result must not be modified; it is
// the client's body itself if nothing changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.Drop(append([]string{"model"}, e.Omit...)...)
	r.editConfig(&edits, e)
	r.editSignatures(&edits, e)
	return edits.Body()
}

// editConfig adds the default limit and the kinds of output to generationConfig.
func (r *Request) editConfig(edits *rawjson.Edits, e wire.Edits) {
	var more conversation.ObjectWriter
	if r.Limit == 0 && e.Limit > 0 {
		more.Add("maxOutputTokens", strconv.FormatInt(e.Limit, 10))
	}
	if r.config("responseModalities") == nil {
		more.Add("responseModalities", textOnly)
	}
	config := r.Doc.Find("generationConfig")
	switch {
	case len(more) == 0:
	case r.Doc.Raw("generationConfig") == nil:
		edits.Set("generationConfig", more.Object())
	default:
		for name, value := range rawjson.Members(r.Doc.Body[config.From:config.To]) {
			if string(name) != "maxOutputTokens" && string(name) != "responseModalities" || rawjson.NonNull(value) != nil {
				more.Add(string(name), string(value))
			}
		}
		edits.Set("generationConfig", more.Object())
	}
}

// editSignatures opens the signatures of the line's account and replaces the signatures of other accounts. A
// model from Gemini 3 on rejects the first call of a turn without a signature.
func (r *Request) editSignatures(edits *rawjson.Edits, e wire.Edits) {
	requires := !generationOf(e.Model).isBefore3() && bytes.Contains(r.Doc.Body, []byte(`"functionCall"`))
	raw := r.Doc.Raw("contents")
	if !requires && !r.Doc.HasPrefix() && !e.NoSealed || raw == nil {
		return
	}
	out, changed := []byte{}, false
	for _, content := range list(raw) {
		parts := []byte{}
		edited, first := false, requires
		for _, part := range list(rawjson.Field(content, "parts")) {
			call := rawjson.Field(part, "functionCall") != nil
			text, ok := editSignature(part, e, call && first)
			edited, first = edited || ok, first && !call
			parts = append(append(parts, ','), text...)
		}
		if edited {
			changed = true
			content = form.WithMember(content, "parts", rawjson.Put(nil, "[", parts[1:], "]"))
		}
		out = append(append(out, ','), content...)
	}
	if changed {
		edits.Set("contents", rawjson.Put(nil, "[", out[1:], "]"))
	}
}

// editSignature returns a part with a signature that the line can read, or without one, and whether the
// part changed. A call that requires a signature gets SignatureBypass instead.
func editSignature(part []byte, e wire.Edits, required bool) (out []byte, changed bool) {
	signature := rawjson.Field(part, "thoughtSignature")
	packed := unpack(signature)
	switch own := wire.OpenSeal(packed, e.Origin); {
	case signature == nil && required:
		return rawjson.Put(part[:len(part)-1:len(part)-1], `,"thoughtSignature":"`, SignatureBypass, `"}`), true
	case signature == nil, packed == nil && !e.NoSealed:
		return part, false
	case own != nil && !e.NoSealed:
		return form.WithMember(part, "thoughtSignature", rawjson.Quote(string(own))), true
	case rawjson.Field(part, "functionCall") != nil:
		return form.WithMember(part, "thoughtSignature", []byte(`"`+SignatureBypass+`"`)), true
	}
	return form.WithMember(part, "thoughtSignature", []byte("null")), true
}
