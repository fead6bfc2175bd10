package messages

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// hiddenThinking is the thinking of an answer for a client that asked for none. Most clients read only the
// first block of an answer, so the first block must not be thinking. The state that the line needs in the
// next turn travels in the id of the next call.
type hiddenThinking struct {
	hides bool
	state conversation.CallState
}

// newHidden returns the state for the answer to a request from a line.
func newHidden(r *Request, line wire.Form) hiddenThinking {
	return hiddenThinking{
		hides: r.Doc != nil && !asksThinking(r.Doc.Raw("thinking")), state: conversation.CallState{KeepsText: line == wire.FormChat},
	}
}

// asksThinking reports whether a client wants to see thinking, by its field `thinking`.
func asksThinking(thinking []byte) bool {
	switch rawjson.Unquote(rawjson.Field(thinking, "type")) {
	case "enabled", "adaptive", "between_tools":
		return rawjson.Unquote(rawjson.Field(thinking, "display")) != "omitted"
	}
	return false
}

// has reports whether a part is hidden.
func (h *hiddenThinking) has(o *conversation.Output) bool {
	return h.hides && o != nil && o.Kind == conversation.Thinking
}

// idOf returns the client's id of a call. If thinking is hidden, the id carries the thinking before the call.
// seal is the call's sealed signature, or nil.
func (h *hiddenThinking) idOf(id string, seal []byte) string {
	if !h.hides {
		return id
	}
	h.state.End(seal)
	return conversation.SealID(id, h.state.Take())
}
