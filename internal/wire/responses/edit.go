package responses

import (
	"bytes"
	"cmp"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// encryptedReasoning requests the model's reasoning in a form to send back. Without storage it is
// the only way to continue from it.
const encryptedReasoning = `"reasoning.encrypted_content"`

// Body returns the body for a line: the client's bytes except for the gateway's fields. `store` is
// always sent as false, because providers keep answers by default. Check must be called first. The
// result must not be modified; it is the client's body itself if nothing changes.
func (r *Request) Body(e wire.Edits) rawjson.Pieces { return r.bodyFor(wire.Translation{Edits: e}) }

// bodyFor is Body with the line's properties. A reasoning model is asked for its encrypted
// reasoning. Items lose their ids, unknown to the provider since nothing was stored.
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
	if list := withoutIDs(r.Doc.Raw("input")); list != nil {
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

// withoutIDs returns the input without the ids of its items, without reasoning that has only an id,
// and without items sealed for a line of another form. It returns nil if nothing changes.
func withoutIDs(input []byte) []byte {
	if len(input) == 0 || input[0] != '[' || !bytes.Contains(input, []byte(`"id"`)) && !bytes.Contains(input, []byte(`"reasoning"`)) {
		return nil
	}
	var out []byte
	changed := false
	for _, item := range rawjson.Elements(input) {
		shorter, hadID := item, false
		switch rawjson.Unquote(rawjson.Field(item, "type")) {
		case "reasoning":
			encrypted := rawjson.Field(item, "encrypted_content")
			if encrypted == nil && len(rawjson.Field(item, "content")) <= 2 || bytes.HasPrefix(rawjson.Contents(encrypted), []byte(wire.SealMark)) {
				changed = true
				continue
			}
			shorter, hadID = withoutID(item)
		case "", "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
			shorter, hadID = withoutID(item)
		}
		changed = changed || hadID
		out = append(append(out, ','), shorter...)
	}
	switch {
	case !changed:
		return nil
	case out == nil:
		return []byte("[]")
	}
	out[0] = '['
	return append(out, ']')
}

// withoutID returns an item without its id, and false if it has none.
func withoutID(item []byte) (out []byte, found bool) {
	out = []byte{'{'}
	for name, value := range rawjson.Members(item) {
		if string(name) == "id" {
			found = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, rawjson.Quote(string(name))...), ':')
		out = append(out, value...)
	}
	if !found {
		return item, false
	}
	return append(out, '}'), true
}
