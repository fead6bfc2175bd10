package responses

import (
	"bytes"
	"cmp"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// encryptedReasoning requests the model's reasoning in encrypted form. Since nothing is stored, the client
// must send the reasoning back to continue from it.
const encryptedReasoning = `"reasoning.encrypted_content"`

// Body returns the body for a line: the client's bytes except for the gateway's fields. `store` is
// always sent as false, because providers keep answers by default. Check must be called first. The
// result must not be modified; it is the client's body itself if nothing changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces { return r.bodyFor(wire.Translation{Edits: e}) }

// bodyFor is Body with the line's properties. A reasoning model is asked for its encrypted reasoning. Items
// lose their ids, because the provider stored nothing and does not know the ids.
func (r *Request) bodyFor(t wire.Translation) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", t.Model)
	edits.Drop(t.Omit...)
	r.SetLimit(&edits, outputLimit, cmp.Or(r.Limit, t.Limit))
	if string(r.Doc.Raw("store")) != "false" {
		edits.Set("store", []byte("false"))
	}
	if include := r.Doc.Raw("include"); t.Reasoning && !t.NoEncrypted && !bytes.Contains(include, []byte(encryptedReasoning)) {
		edits.Set("include", withEncrypted(include))
	}
	r.SetEffort(&edits, "reasoning", t.Edits)
	if list := ownItems(r.Doc.Raw("input"), t); list != nil {
		edits.Set("input", list)
	}
	return edits.Body()
}

// withEncrypted returns an `include` list with encryptedReasoning.
func withEncrypted(list []byte) []byte {
	out := []byte{'['}
	for _, name := range rawjson.Elements(list) {
		out = append(append(out, name...), ',')
	}
	return append(append(out, encryptedReasoning...), ']')
}

// ownItems returns the input without the ids of its items, without reasoning that has only an id, and
// with the state of the line's account only. It returns nil if nothing changes.
func ownItems(input []byte, t wire.Translation) []byte {
	if len(input) == 0 || input[0] != '[' || !bytes.Contains(input, []byte(`"id"`)) && !bytes.Contains(input, []byte(`"reasoning"`)) &&
		!bytes.Contains(input, []byte(wire.SealMark)) {
		return nil
	}
	list, changed := form.EditElements(input, func(item []byte) []byte {
		switch rawjson.Unquote(rawjson.Field(item, "type")) {
		case "reasoning":
			encrypted := rawjson.Contents(rawjson.Field(item, "encrypted_content"))
			if len(encrypted) == 0 && len(rawjson.Field(item, "content")) <= 2 || len(encrypted) > 0 && t.NoSealed {
				return nil
			}
			item = form.OpenSealed(item, t.Origin, "encrypted_content")
		case "compaction":
			return form.OpenSealed(item, t.Origin, "encrypted_content")
		case "", "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
		default:
			return item
		}
		if item == nil {
			return nil
		}
		return form.EditMember(item, "id", func([]byte) []byte { return nil })
	})
	if !changed {
		return nil
	}
	return list
}
