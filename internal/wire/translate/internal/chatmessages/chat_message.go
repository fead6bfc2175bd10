package chatmessages

import (
	"bytes"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/piece"
)

// chatMessage holds the members of a message of the chat form, or of a delta, as JSON. Absent
// members are nil.
type chatMessage struct {
	reasoning []byte // from any vendor's field
	content   []byte // a string, or parts
	refusal   []byte
	calls     []byte // a list
	function  []byte // the older form of a call
}

// readChatMessage reads a message or a delta.
func readChatMessage(message []byte) (m chatMessage) {
	for name, value := range rawjson.Members(message) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "role", "name", "id", "type", "index":
		case "content":
			m.content = value
		case "refusal":
			m.refusal = value
		case "tool_calls":
			m.calls = value
		case "function_call":
			m.function = value
		default:
			// The same reasoning may be in two fields; plain text is preferred. Its signature is
			// not part of it.
			signs := bytes.HasSuffix(name, []byte("signature"))
			better := m.reasoning == nil || !rawjson.IsText(m.reasoning) && rawjson.IsText(value)
			if form.IsThought(name) && !signs && len(value) > 2 && better {
				m.reasoning = value
			}
		}
	}
	return m
}

// eachReasoning calls add for every text of a reasoning field: a string, or a vendor's details.
func eachReasoning(value []byte, depth int, add func([]byte)) {
	const deepest = 8 // deeper than any vendor's details
	switch {
	case len(value) == 0 || depth > deepest:
	case rawjson.IsText(value):
		add(value)
	case value[0] == '[':
		for _, element := range rawjson.Elements(value) {
			eachReasoning(element, depth+1, add)
		}
	case value[0] == '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "text", "summary", "thinking", "content":
				eachReasoning(member, depth+1, add)
			}
		}
	}
}

// eachContent calls add for every text of a content field: a string, or parts, possibly with
// thinking.
func eachContent(value []byte, add func(kind piece.BlockKind, raw []byte)) {
	if rawjson.IsText(value) {
		add(piece.TextBlock, value)
		return
	}
	for _, part := range rawjson.Elements(value) {
		switch kind := rawjson.Contents(rawjson.Field(part, "type")); {
		case form.IsThought(kind):
			eachReasoning(part, 0, func(raw []byte) { add(piece.ThinkingBlock, raw) })
		case string(kind) == "refusal":
			add(piece.TextBlock, rawjson.Field(part, "refusal"))
		default:
			add(piece.TextBlock, rawjson.Field(part, "text"))
		}
	}
}

// argumentScanner reads a call's arguments piece by piece to find their end.
type argumentScanner struct {
	depth   int
	started bool
	quoted  bool // inside a string
	escaped bool // after a backslash in a string
	scratch []byte
}

// add adds a piece, the contents of a JSON string.
func (a *argumentScanner) add(raw []byte) {
	text := raw
	if bytes.IndexByte(raw, '\\') >= 0 {
		a.scratch = rawjson.AppendUnquoted(a.scratch[:0], raw)
		text = a.scratch
	}
	for _, c := range text {
		switch {
		case a.escaped:
			a.escaped = false
		case a.quoted:
			a.escaped = c == '\\'
			a.quoted = c != '"'
		case c == '"':
			a.quoted = true
		case c == '{' || c == '[':
			a.depth++
			a.started = true
		case c == '}' || c == ']':
			a.depth--
		}
	}
}

// complete reports whether an object has started and ended.
func (a *argumentScanner) complete() bool { return a.started && a.depth <= 0 && !a.quoted }
