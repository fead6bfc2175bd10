package translate

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// sealed is a pair for a line of the client's form. It puts the state of the provider's account in
// answers under a seal, so that no other account of the model gets it.
type sealed struct {
	wire.Pair
	form   wire.Form
	origin string
}

// withSeals returns the pair with seals if the model has lines of several accounts.
func withSeals(p wire.Pair, form wire.Form, id wire.Identity) wire.Pair {
	if !id.Seals {
		return p
	}
	return sealed{p, form, id.Origin}
}

// Events implements wire.Pair.
func (s sealed) Events() (wire.Meter, wire.Writer) {
	m, w := s.Pair.Events()
	return m, &sealedStream{Writer: w, sealer: sealer{form: s.form, origin: s.origin}}
}

// Render implements wire.Pair.
func (s sealed) Render(a wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	if mayHoldState(raw) {
		seals := sealer{form: s.form, origin: s.origin}
		raw = rawjson.Replace(raw, seals.edits(raw))
	}
	return s.Pair.Render(a, raw, u)
}

// Every answer or event with state of an account contains at least one of stateWords.
var stateWords = [...][]byte{[]byte("ignature"), []byte("encrypted"), []byte("redacted")}

// mayHoldState reports whether an answer or an event may hold state.
func mayHoldState(data []byte) bool {
	for _, word := range stateWords {
		if bytes.Contains(data, word) {
			return true
		}
	}
	return false
}

// sealedStream seals the state in events and passes the events to another writer. It is not safe for
// concurrent use.
type sealedStream struct {
	wire.Writer
	sealer sealer
}

// Append implements wire.Writer.
func (s *sealedStream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	if !mayHoldState(e.Data) {
		return s.Writer.Append(dst, e, f)
	}
	edits := s.sealer.edits(e.Data)
	switch {
	case edits == nil:
	case e.Offset < 0:
		e.Data = rawjson.Replace(e.Data, edits)
		e.Raw = sse.AppendLines(nil, e.Name, e.Data)
	default:
		rest := len(e.Raw) - e.Offset - len(e.Data)
		for i := range edits {
			edits[i].From, edits[i].To = edits[i].From+e.Offset, edits[i].To+e.Offset
		}
		e.Raw = rawjson.Replace(e.Raw, edits)
		e.Data = e.Raw[e.Offset : len(e.Raw)-rest]
	}
	return s.Writer.Append(dst, e, f)
}

// statePaths are the places of state in answers and events of a form. `|` separates names. A list stands for
// its elements.
var statePaths = map[wire.Form][][]string{
	wire.FormChat: {
		{"choices", "message|delta", "reasoning_details", "data|signature"},
		{"choices", "message|delta", "tool_calls|images", "extra_content", "google", "thought_signature"},
		{"choices", "message|delta", "extra_content", "google", "thought_signature"},
	},
	wire.FormMessages: {
		{"content|content_block", "signature|data"},
		{"message", "content", "signature|data"},
		{"delta", "signature"},
	},
	wire.FormGemini: {
		{"candidates", "content", "parts", "thoughtSignature"},
	},
	wire.FormResponses: {
		{"output|item", "encrypted_content"},
		{"response", "output", "encrypted_content"},
	},
}

// sealer finds the state in the answers of a form. The state of a part may come in several deltas: only
// the first gets the seal.
type sealer struct {
	form   wire.Form
	origin string
	begun  map[string]bool // the parts with a seal
}

// maxBegun bounds the parts of a stream whose state comes in deltas.
const maxBegun = 4096

// edits returns the edits that seal the state of an answer or an event.
func (s *sealer) edits(data []byte) (edits []rawjson.Splice) {
	from := rawjson.SkipSpace(data, 0)
	if from == len(data) || data[from] != '{' && data[from] != '[' || !rawjson.IsValid(data[from:]) {
		return nil
	}
	to := len(bytes.TrimRight(data, " \t\r\n"))
	for _, path := range statePaths[s.form] {
		edits = s.find(edits, data, from, to, path, "")
	}
	return edits
}

// find adds the edits for the state below data[from:to]. part identifies the part of a delta by its
// indexes; it is empty outside of deltas, and for a part without an index.
func (s *sealer) find(edits []rawjson.Splice, data []byte, from, to int, path []string, part string) []rawjson.Splice {
	value := data[from:to]
	switch {
	case value[0] == '[':
		for a, b := range rawjson.ElementSpans(value) {
			below := part
			if index := rawjson.Field(value[a:b], "index"); part != "" && index != nil {
				below += "/" + string(index)
			} else {
				below = ""
			}
			edits = s.find(edits, data, from+a, from+b, path, below)
		}
	case value[0] == '{' && len(path) > 0:
		for m := range rawjson.Spans(value) {
			below := part
			switch {
			case !slices.Contains(strings.Split(path[0], "|"), string(m.Name)):
				continue
			case string(m.Name) == "delta":
				below = "/" + string(rawjson.Field(value, "index"))
			case part != "":
				below += "/" + string(m.Name)
			}
			edits = s.find(edits, data, from+m.From, from+m.To, path[1:], below)
		}
	case len(path) > 0 || !rawjson.IsText(value) || len(value) == 2:
	case s.form == wire.FormGemini:
		edits = append(edits, rawjson.Splice{From: from, To: to, Text: gemini.SealSignature(value, s.origin)})
	case s.begins(part):
		edits = append(edits, rawjson.Splice{From: from + 1, To: from + 1, Text: wire.SealOf(s.origin)})
	}
	return edits
}

// begins reports whether a part has no seal yet, and records the part.
func (s *sealer) begins(part string) bool {
	if part == "" {
		return true
	}
	if s.begun[part] || len(s.begun) >= maxBegun {
		return false
	}
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.begun[part] = true
	return true
}
