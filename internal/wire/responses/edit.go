package responses

import (
	"bytes"
	"cmp"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// encryptedReasoning asks for what a model has thought in a form that can be sent
// back: where nothing is stored it is the only way to go on from there.
const encryptedReasoning = `"reasoning.encrypted_content"`

// Body returns the bytes for a line of the responses form: the client's own,
// in its own order and spacing, but for the owned fields. `store` is always
// sent as false, also where the client left it out: providers keep answers
// otherwise. Call Check first. The result is the client's body itself when
// nothing changes; nobody may write to it.
func (r *Request) Body(e wire.Edits) rawjson.Pieces { return r.bodyFor(wire.Translation{Edits: e}) }

// bodyFor is Body for a model of which more is known. One that thinks is asked for
// its encrypted reasoning. Items lose the ids that name them at a provider: since
// nothing was stored, it does not know them.
func (r *Request) bodyFor(t wire.Translation) rawjson.Pieces {
	edits := rawjson.Edits{Doc: r.Doc}
	edits.SetText("model", t.Model)
	edits.Drop(t.Omit...)
	r.SetLimit(&edits, outputLimit, cmp.Or(r.Limit, t.Limit))
	if string(r.Doc.Raw("store")) != "false" {
		edits.Set("store", []byte("false"))
	}
	if include := r.Doc.Raw("include"); t.Reasoning && !t.NoEncrypted && !bytes.Contains(include, []byte(encryptedReasoning)) {
		edits.Set("include", including(include))
	}
	r.SetEffort(&edits, "reasoning", t.Edits)
	if list := nameless(r.Doc.Raw("input")); list != nil {
		edits.Set("input", list)
	}
	return edits.Body()
}

// including is a list of what to include with the encrypted reasoning.
func including(list []byte) []byte {
	out := []byte{'['}
	for _, name := range rawjson.Elements(list) {
		out = append(append(out, name...), ',')
	}
	return append(append(out, encryptedReasoning...), ']')
}

// nameless is an input whose items have no ids, and which has no reasoning of
// which only the id is left, nor what is sealed for a line of another form; nil
// where it is so already.
func nameless(input []byte) []byte {
	if len(input) == 0 || input[0] != '[' || !bytes.Contains(input, []byte(`"id"`)) && !bytes.Contains(input, []byte(`"reasoning"`)) {
		return nil
	}
	var out []byte
	changed := false
	for _, item := range rawjson.Elements(input) {
		kept, less := item, false
		switch rawjson.Unquote(rawjson.Field(item, "type")) {
		case "reasoning":
			encrypted := rawjson.Field(item, "encrypted_content")
			if encrypted == nil && len(rawjson.Field(item, "content")) <= 2 || bytes.HasPrefix(rawjson.Contents(encrypted), []byte(wire.SealMark)) {
				changed = true
				continue
			}
			kept, less = withoutID(item)
		case "", "message", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output":
			kept, less = withoutID(item)
		}
		changed = changed || less
		out = append(append(out, ','), kept...)
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

// withoutID is an item without its id; false where it has none.
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
