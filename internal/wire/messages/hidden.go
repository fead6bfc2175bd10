package messages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// hiddenThinking is the thinking of an answer for a client that asked for none. Most clients read only
// the first block of an answer, so no thinking may stand there. The state that the line needs in the
// next turn travels in the id of the next call.
type hiddenThinking struct {
	hides     bool
	keepsText bool // the line needs the text of its thinking
	text      []byte
	state     []conversation.Part
}

// newHidden returns the state for the answer to a request from a line.
func newHidden(r *Request, line wire.Form) hiddenThinking {
	return hiddenThinking{hides: r.Doc != nil && !asksThinking(r.Doc.Raw("thinking")), keepsText: line == wire.FormChat}
}

// asksThinking reports whether a client wants to see thinking, by its field `thinking`.
func asksThinking(thinking []byte) bool {
	switch rawjson.Unquote(rawjson.Field(thinking, "type")) {
	case "enabled", "adaptive", "between_tools":
		return rawjson.Unquote(rawjson.Field(thinking, "display")) != "omitted"
	}
	return false
}

// has reports whether an event is hidden.
func (h *hiddenThinking) has(o *conversation.Output) bool {
	return h.hides && o != nil && o.Kind == conversation.Thinking
}

// add adds text. What is too long for an id is left out.
func (h *hiddenThinking) add(text []byte) {
	if h.keepsText && len(h.text)+len(text) <= conversation.MaxStateText {
		h.text = append(h.text, text...)
	}
}

// end ends thinking, with its signature under a seal, or nil.
func (h *hiddenThinking) end(seal []byte) {
	p := conversation.Part{Kind: conversation.Thinking, Text: h.text}
	if p.Signature.Data = seal; len(seal) > 0 || len(h.text) > 0 {
		h.state = append(h.state, p)
	}
	h.text = nil
}

// idOf returns the id of a call with the thinking before the call, and with the call's own signature
// under a seal, or nil.
func (h *hiddenThinking) idOf(id string, seal []byte) string {
	if !h.hides {
		return id
	}
	h.end(seal)
	id = conversation.SealID(id, h.state)
	h.state = nil
	return id
}
