package vertex

import (
	"bytes"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire/rawjson"
)

// claudeVersion is the version of the messages form, sent in the body on Vertex AI.
const claudeVersion = "vertex-2023-10-16"

// claudeBody converts a messages request for rawPredict: it adds the version and removes the model,
// which is in the address. If model is not empty, the body keeps model.
func claudeBody(body rawjson.Pieces, model string) (rawjson.Pieces, *upstream.Failure) {
	doc, err := rawjson.Open(body.Bytes())
	if err != nil {
		return nil, unreadable(err)
	}
	edits := rawjson.Edits{Doc: doc}
	switch {
	case model != "":
		edits.SetText("model", model)
	case doc.Find("model") != nil:
		edits.Drop("model")
	}
	edits.SetText("anthropic_version", claudeVersion)
	return edits.Body(), nil
}

// geminiBody removes the ids of function calls and results, which Vertex AI rejects as unknown
// fields. A result is matched to its call by name and position.
func geminiBody(text rawjson.Pieces) (rawjson.Pieces, *upstream.Failure) {
	body := text.Bytes()
	if !bytes.Contains(body, []byte(`"function`)) {
		return text, nil
	}
	doc, err := rawjson.Open(body)
	if err != nil {
		return nil, unreadable(err)
	}
	edits := rawjson.Edits{Doc: doc}
	if contents := doc.Raw("contents"); contents != nil {
		edits.Set("contents", eachElement(contents, func(turn []byte) []byte {
			return eachMember(turn, func(parts []byte) []byte { return eachElement(parts, withoutID) }, "parts")
		}))
	}
	return edits.Body(), nil
}

// withoutID removes the ID from a part with a function call or result.
func withoutID(part []byte) []byte {
	return eachMember(part, func(call []byte) []byte {
		doc, err := rawjson.Open(call)
		if err != nil || doc.Find("id") == nil {
			return call
		}
		edits := rawjson.Edits{Doc: doc}
		edits.Drop("id")
		return edits.Body().Bytes()
	}, "functionCall", "functionResponse")
}

// eachElement returns an array with edited elements.
func eachElement(array []byte, edit func([]byte) []byte) []byte {
	if len(array) == 0 || array[0] != '[' {
		return array
	}
	out := append(make([]byte, 0, len(array)), '[')
	for i, element := range rawjson.Elements(array) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, edit(element)...)
	}
	return append(out, ']')
}

// eachMember edits the members of an object with one of the names.
func eachMember(object []byte, edit func([]byte) []byte, names ...string) []byte {
	var edits []rawjson.Splice
	for m := range rawjson.Spans(object) {
		for _, name := range names {
			if string(m.Name) == name {
				edits = append(edits, rawjson.Splice{From: m.From, To: m.To, Text: edit(object[m.From:m.To])})
			}
		}
	}
	return rawjson.Replace(object, edits)
}

// geminiCountBody returns the request to count the tokens of a request: Vertex AI only accepts the
// fields it counts.
func geminiCountBody(text rawjson.Pieces) (rawjson.Pieces, *upstream.Failure) {
	text, f := geminiBody(text)
	if f != nil {
		return nil, f
	}
	body := text.Bytes()
	out := []byte{'{'}
	for _, name := range []string{"contents", "systemInstruction", "tools", "generationConfig"} {
		if value := rawjson.Field(body, name); value != nil {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = rawjson.Put(out, `"`+name+`":`, value, "")
		}
	}
	return rawjson.Pieces{append(out, '}')}, nil
}

// unreadable returns the failure of a request body the gateway cannot edit.
func unreadable(err error) *upstream.Failure {
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("the request cannot be put for the provider: %w", err))
	f.Health = upstream.HealthNone
	return f
}
