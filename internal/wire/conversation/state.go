package conversation

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"io"
	"strings"

	"tollgate/internal/wire"
)

// A client that asked for no thinking gets none, but the line may need the reasoning before a call in
// the next turn: DeepSeek refuses a call without it, and Gemini a call without its signature. Then the
// state travels in the call's id, which every client returns unread. It is compressed, in the alphabet
// of ids of the messages form.

const (
	// MaxStateText is the longest text of reasoning in an id, in bytes.
	MaxStateText = 32 << 10
	// maxState is the limit on the state in an id, in bytes.
	maxState = 256 << 10
	// plainMark starts a text of reasoning in the state.
	plainMark = '='
)

// CallState collects the reasoning of an answer before its next call.
type CallState struct {
	// KeepsText is set if the line needs the text of its reasoning, and not only the signature.
	KeepsText bool

	text  []byte // of reasoning that has not ended
	state []Part
}

// Add adds text of reasoning. A piece that would exceed MaxStateText is left out.
func (s *CallState) Add(text []byte) {
	if s.KeepsText && len(s.text)+len(text) <= MaxStateText {
		s.text = append(s.text, text...)
	}
}

// End ends reasoning. seal is its sealed signature, or nil.
func (s *CallState) End(seal []byte) {
	p := Part{Kind: Thinking, Text: s.text}
	if p.Signature.Data = seal; len(seal) > 0 || len(s.text) > 0 {
		s.state = append(s.state, p)
	}
	s.text = nil
}

// Take returns the state for a call, and begins the state for the next one.
func (s *CallState) Take() []Part {
	state := s.state
	s.state = nil
	return state
}

// SealID returns the id of a call with the reasoning before it. It returns id if there is no state, or
// too much.
func SealID(id string, state []Part) string {
	plain := []byte(id)
	for i := range state {
		if plain = append(plain, '\n'); len(state[i].Signature.Data) > 0 {
			plain = append(plain, state[i].Signature.Data...)
		} else {
			plain = append(append(plain, plainMark), state[i].Text...)
		}
	}
	if len(state) == 0 || len(plain) > maxState {
		return id
	}
	var packed bytes.Buffer
	w, _ := flate.NewWriter(&packed, flate.BestSpeed) // the level is valid
	_, _ = w.Write(plain)                             // a buffer takes all
	_ = w.Close()
	return wire.SealedIDMark + base64.RawURLEncoding.EncodeToString(packed.Bytes())
}

// OpenID returns the call's own id, and the reasoning before the call. An id without state is unchanged.
func OpenID(id string) (own string, state []Part) {
	packed, ok := strings.CutPrefix(id, wire.SealedIDMark)
	if !ok {
		return id, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(packed)
	if err != nil {
		return id, nil
	}
	plain, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(raw)), maxState))
	if err != nil {
		return id, nil
	}
	lines := bytes.Split(plain, []byte{'\n'})
	for _, line := range lines[1:] {
		p := Part{Kind: Thinking}
		switch s := (Signature{Data: line}); {
		case !isContents(line):
			return id, nil
		case s.IsSealed():
			p.Signature = s
		case len(line) > 0 && line[0] == plainMark:
			p.Text = line[1:]
		default:
			return id, nil
		}
		state = append(state, p)
	}
	return string(lines[0]), state
}
