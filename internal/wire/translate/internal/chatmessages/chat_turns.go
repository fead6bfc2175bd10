package chatmessages

import (
	"bytes"
	"fmt"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// dialogue collects the messages of a chat request: successive turns of one role are merged, and
// the result of every call follows it directly.
type dialogue struct {
	turns     []chatTurn
	loopStart int // index of the first message in the current loop of tool calls
	id        wire.Identity

	open    []openCall // calls of the last assistant turn, at most maxTurnCalls
	results int        // index of the turn of their results, or 0
}

// chatTurn is one message of the chat form, or the results of one turn's calls.
type chatTurn struct {
	role      string
	parts     []chatPart
	calls     []byte // of the assistant: a list without brackets
	reasoning []byte // of the assistant, the contents of a JSON string
	results   []byte // of tools: messages, each with a comma after it
}

// chatPart is a content part: a text, the contents of a JSON string, or the JSON of another part.
type chatPart struct {
	text []byte
	json []byte
}

const (
	roleSystem    = "system"
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "tool"
)

// maxIDLength is the limit on the id of a call at all providers of the form.
const maxIDLength = 40

// paragraph separates merged texts, as the contents of a JSON string.
const paragraph = `\n\n`

// loopStartOf returns the index after the last user message with more than results of tools. The
// assistant continues from its reasoning since then.
func loopStartOf(list []byte) int {
	from := 0
	for i, message := range rawjson.Elements(list) {
		if rawjson.Unquote(rawjson.Field(message, "role")) != roleUser {
			continue
		}
		content := rawjson.Field(message, "content")
		isUser := rawjson.IsText(content)
		for _, b := range rawjson.Elements(content) {
			isUser = isUser || rawjson.Unquote(rawjson.Field(b, "type")) != "tool_result"
		}
		if isUser {
			from = i + 1
		}
	}
	return from
}

// addSystem adds a system prompt, a string or text blocks.
func (d *dialogue) addSystem(content []byte, at string) error {
	return piece.EachSystemText(content, at, func(text []byte) { d.addParts(roleSystem, textPart(text)) })
}

// add adds the message at index of the client's list.
func (d *dialogue) add(message []byte, index int) error {
	at := fmt.Sprintf("messages[%d]", index)
	role, content := rawjson.Unquote(rawjson.Field(message, "role")), rawjson.Field(message, "content")
	at += ".content"
	if content == nil || content[0] != '"' && content[0] != '[' {
		return unsupported(at, "`{param}` must be a string or an array of blocks.")
	}
	switch role {
	case roleSystem:
		return d.addSystem(content, at)
	case roleUser:
		if rawjson.IsText(content) {
			d.addParts(roleUser, textPart(content))
			return nil
		}
		return d.addUser(content, at)
	case roleAssistant:
		return d.addAssistant(content, at, index >= d.loopStart)
	}
	return unsupported(fmt.Sprintf("messages[%d].role", index), "`messages[%d].role` must be user, assistant or system.", index)
}

// turnOf returns the current turn of a role, starting it if necessary.
func (d *dialogue) turnOf(role string) *chatTurn {
	n := len(d.turns)
	if n > 0 && d.turns[n-1].role == role {
		return &d.turns[n-1]
	}
	if n > 0 && d.turns[n-1].role == roleAssistant && len(d.open) > 0 {
		d.results = n
		d.turns = append(d.turns, chatTurn{role: roleTool})
		if role == roleTool {
			return &d.turns[n]
		}
	}
	if role == roleAssistant {
		d.closeCalls()
		d.open, d.results = d.open[:0], 0
	}
	d.turns = append(d.turns, chatTurn{role: role})
	return &d.turns[len(d.turns)-1]
}

// addParts adds parts to the turn of a role.
func (d *dialogue) addParts(role string, parts ...chatPart) {
	for _, p := range parts {
		if p.json != nil || len(p.text) > 0 {
			t := d.turnOf(role)
			t.parts = append(t.parts, p)
		}
	}
}

// textPart returns the part for a JSON string. It is empty for a blank text.
func textPart(raw []byte) chatPart {
	if piece.IsBlank(raw) {
		return chatPart{}
	}
	return chatPart{text: rawjson.Contents(raw)}
}

// addAssistant adds an assistant's blocks. Reasoning is kept in the current loop if it has no
// provider's signature: then it came from a chat line.
func (d *dialogue) addAssistant(content []byte, at string, inLoop bool) error {
	if rawjson.IsText(content) {
		d.addParts(roleAssistant, textPart(content))
		return nil
	}
	var text, reasoning, sealed []byte
	calls := false
	for i, b := range rawjson.Elements(content) {
		switch rawjson.Unquote(rawjson.Field(b, "type")) {
		case "text":
			text = append(text, rawjson.Contents(rawjson.Field(b, "text"))...)
		case "thinking":
			if inLoop && len(rawjson.Contents(rawjson.Field(b, "signature"))) == 0 {
				reasoning = append(reasoning, rawjson.Contents(rawjson.Field(b, "thinking"))...)
			}
		case "redacted_thinking":
			sealed = rawjson.Contents(rawjson.Field(b, "data"))
		case "tool_use":
			calls = true
			if err := d.addCall(b, sealed, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
			sealed = nil
		default: // results of hosted tools, and signed reasoning
		}
	}
	part := textPart(rawjson.Put(nil, `"`, text, `"`))
	d.addParts(roleAssistant, part)
	if len(reasoning) > 0 && (calls || part.text != nil) {
		t := d.turnOf(roleAssistant)
		t.reasoning = append(t.reasoning, reasoning...)
	}
	return nil
}

// addCall adds a tool call, with the sealed signature of the reasoning before it, the contents of a
// JSON string, if this line sealed it.
func (d *dialogue) addCall(b, sealed []byte, at string) error {
	id, name := rawjson.Field(b, "id"), rawjson.Field(b, "name")
	if !rawjson.IsText(id) || !rawjson.IsText(name) || len(id) == 2 || len(name) == 2 {
		return unsupported(at, "`{param}` needs `id` and `name`, as strings.")
	}
	t := d.turnOf(roleAssistant)
	if len(d.open) >= maxTurnCalls {
		return unsupported(at, "`{param}`: one turn may hold %d calls at most.", maxTurnCalls)
	}
	if t.calls != nil {
		t.calls = append(t.calls, ',')
	}
	lineID := piece.ShortID(id, maxIDLength)
	t.calls = rawjson.Put(t.calls, `{"id":`, lineID, "")
	t.calls = rawjson.Put(t.calls, `,"type":"function","function":{"name":`, name, "")
	input := rawjson.Field(b, "input")
	if input == nil {
		input = []byte("{}")
	}
	t.calls = append(piece.AppendQuoted(append(t.calls, `,"arguments":`...), input), '}')
	t.calls = append(item.AppendSignature(t.calls, d.id, sealed), '}')
	d.open = append(d.open, openCall{id: rawjson.Unquote(id), lineID: string(lineID)})
	return nil
}

// addUser adds a user's blocks.
func (d *dialogue) addUser(content []byte, at string) error {
	for i, b := range rawjson.Elements(content) {
		at := fmt.Sprintf("%s[%d]", at, i)
		if rawjson.Unquote(rawjson.Field(b, "type")) == "tool_result" {
			if err := d.addResult(b, at); err != nil {
				return err
			}
			continue
		}
		parts, err := piece.Blocks{}.Parts(b, at)
		if err != nil {
			return err
		}
		d.addParts(roleUser, chatPartsOf(parts)...)
	}
	return nil
}

// addResult adds the result of a tool. The form accepts only text for it: images and files follow
// in a user message. A result without a call becomes a user message.
func (d *dialogue) addResult(b []byte, at string) error {
	blocks, err := piece.Blocks{}.Result(b, at)
	if err != nil {
		return err
	}
	var text []byte
	var others []chatPart
	for _, p := range chatPartsOf(blocks) {
		switch {
		case p.json != nil:
			others = append(others, p)
		case len(p.text) > 0:
			if text != nil {
				text = append(text, `\n`...)
			}
			text = append(text, p.text...)
		}
	}
	if string(rawjson.Field(b, "is_error")) == "true" {
		text = append([]byte("Error: "), text...)
	}
	id := rawjson.Field(b, "tool_use_id")
	i := d.find(rawjson.Unquote(id))
	if i < 0 {
		d.addParts(roleUser, chatPart{text: text})
	} else {
		d.reply(i, text)
	}
	if len(others) > 0 {
		label := append([]byte("From the result of the tool call "), rawjson.Contents(id)...)
		d.addParts(roleUser, chatPart{text: append(label, ':')})
		d.addParts(roleUser, others...)
	}
	return nil
}

// find returns the index of the call with an id and without a result, or -1.
func (d *dialogue) find(id string) int {
	for i, c := range d.open {
		if !c.done && c.id == id {
			return i
		}
	}
	return -1
}

// reply adds the result of an open call, the contents of a JSON string.
func (d *dialogue) reply(i int, text []byte) {
	d.open[i].done = true
	if d.results == 0 {
		d.turnOf(roleTool)
	}
	t := &d.turns[d.results]
	t.results = rawjson.Put(t.results, `{"role":"tool","tool_call_id":`, d.open[i].lineID, "")
	t.results = rawjson.Put(t.results, `,"content":"`, text, `"},`)
}

// closeCalls adds results for calls without one.
func (d *dialogue) closeCalls() {
	for i, c := range d.open {
		if !c.done {
			d.reply(i, []byte(noResult))
		}
	}
}

// finish ends the dialogue. The user or a tool must come last: providers reject anything else, or
// take it for a whole turn.
func (d *dialogue) finish() {
	d.closeCalls()
	n := len(d.turns)
	if n == 0 || d.turns[n-1].role == roleAssistant || d.turns[n-1].role == roleSystem && n == 1 {
		d.addParts(roleUser, chatPart{text: []byte(continueText)})
	}
}

// append appends the messages as a list.
func (d *dialogue) append(out []byte) []byte {
	out = append(out, '[')
	for _, t := range d.turns {
		if t.role == roleTool {
			out = append(out, t.results...)
			continue
		}
		out = rawjson.Put(out, `{"role":"`, t.role, `","content":`)
		out = t.appendContent(out)
		if t.reasoning != nil {
			out = rawjson.Put(out, `,"reasoning_content":"`, t.reasoning, `"`)
		}
		if t.calls != nil {
			out = rawjson.Put(out, `,"tool_calls":[`, t.calls, "]")
		}
		out = append(out, "},"...)
	}
	return append(bytes.TrimSuffix(out, []byte(",")), ']')
}

// appendContent appends the parts, as one string if all are text, accepted by every provider.
func (t *chatTurn) appendContent(out []byte) []byte {
	if len(t.parts) == 0 {
		return append(out, "null"...)
	}
	whole := true
	for _, p := range t.parts {
		whole = whole && p.json == nil
	}
	for i, p := range t.parts {
		switch {
		case whole && i == 0:
			out = append(out, '"')
		case whole:
			out = append(out, paragraph...)
		case i == 0:
			out = append(out, '[')
		default:
			out = append(out, ',')
		}
		switch {
		case p.json != nil:
			out = append(out, p.json...)
		case whole:
			out = append(out, p.text...)
		default:
			out = rawjson.Put(out, `{"type":"text","text":"`, p.text, `"}`)
		}
	}
	if whole {
		return append(out, '"')
	}
	return append(out, ']')
}
