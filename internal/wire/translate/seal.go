package translate

import (
	"bytes"
	"slices"
	"strings"

	"tollgate/internal/wire"
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

// withSeals returns the pair with seals if the model has lines of several accounts. Pairs of the Gemini
// form, whose signatures are base64, add them themselves.
func withSeals(p wire.Pair, form wire.Form, id wire.Identity) wire.Pair {
	if !id.Seals || form == wire.FormGemini {
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
	pieces, err := s.Pair.Render(a, raw, u)
	if err != nil || !mayHoldState(raw) {
		return pieces, err
	}
	whole := bytes.Join(pieces[:], nil)
	seals := sealer{form: s.form, origin: s.origin}
	return [3][]byte{rawjson.Replace(whole, seals.edits(whole))}, nil
}

// stateWords are in every answer and event with state of an account.
var stateWords = [...][]byte{[]byte("signature"), []byte("encrypted"), []byte("redacted")}

// mayHoldState reports whether an answer or an event may hold state.
func mayHoldState(data []byte) bool {
	for _, word := range stateWords {
		if bytes.Contains(data, word) {
			return true
		}
	}
	return false
}

// sealedStream writes the events of another writer with seals. It is not safe for concurrent use.
type sealedStream struct {
	wire.Writer
	sealer sealer
}

// Append implements wire.Writer.
func (s *sealedStream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	from := len(dst)
	if dst = s.Writer.Append(dst, e, f); !mayHoldState(dst[from:]) {
		return dst
	}
	events := bytes.Clone(dst[from:])
	dst = dst[:from]
	for reader := sse.NewReader(bytes.NewReader(events), len(events)+1); ; {
		e, err := reader.Next()
		if err != nil {
			return dst // the end: the writer's events are well formed
		}
		edits := s.sealer.edits(e.Data)
		switch {
		case edits == nil:
			dst = append(dst, e.Raw...)
		case e.Offset < 0:
			dst = sse.AppendLines(dst, e.Name, rawjson.Replace(e.Data, edits))
		default:
			for i := range edits {
				edits[i].From, edits[i].To = edits[i].From+e.Offset, edits[i].To+e.Offset
			}
			dst = append(dst, rawjson.Replace(e.Raw, edits)...)
		}
	}
}

// statePaths are the places of state in answers and events of a form. A list stands for its elements.
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

// edits returns the edits of an answer or an event.
func (s *sealer) edits(data []byte) (edits []rawjson.Splice) {
	from := rawjson.SkipSpace(data, 0)
	if from == len(data) || data[from] != '{' || !rawjson.IsValid(data[from:]) {
		return nil
	}
	for _, path := range statePaths[s.form] {
		edits = s.find(edits, data, from, len(data), path, "")
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
	case len(path) == 0 && rawjson.IsText(value) && len(value) > 2 && s.begins(part):
		edits = append(edits, rawjson.Splice{From: from + 1, To: from + 1, Text: wire.SealOf(s.origin)})
	}
	return edits
}

// begins reports whether the state of a part begins.
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
