package completions

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// chatMessage is a message being encoded.
type chatMessage struct {
	role   string
	groups [][]conversation.Part // the parts of one turn each
	// reasoning is the assistant's reasoning in the current turns, the contents of a JSON string.
	reasoning []byte
	calls     []byte // with a comma before each
}

var roles = [...]string{conversation.System: "system", conversation.User: "user", conversation.Assistant: "assistant"}

// appendMessages appends the messages of a repaired history. The form accepts only text as a result: images
// and files follow in a user message. Successive turns of one role become one message for a client of the
// messages form.
func (e *encoder) appendMessages(turns []conversation.Turn) error {
	merges := e.Client == wire.FormMessages
	var list []chatMessage
	add := func(role string, parts []conversation.Part) *chatMessage {
		if n := len(list); !merges || n == 0 || list[n-1].role != role {
			list = append(list, chatMessage{role: role})
		}
		m := &list[len(list)-1]
		m.groups = append(m.groups, parts)
		return m
	}
	var results []byte // the results of the last calls, with a comma before each
	flush := func() {
		if results != nil {
			list = append(list, chatMessage{role: "tool", calls: results})
			results = nil
		}
	}
	for i := range turns {
		t := &turns[i]
		if t.Role != conversation.Results {
			if m := e.wordsOf(t); m != nil {
				to := add(m.role, m.groups[0])
				to.reasoning, to.calls = append(to.reasoning, m.reasoning...), append(to.calls, m.calls...)
			}
			continue
		}
		var attachments []conversation.Part
		for k := range t.Parts {
			text, others := e.resultOf(&t.Parts[k])
			results = rawjson.Put(results, `,{"role":"tool","tool_call_id":`, lineID(t.Parts[k].Call), `,"content":"`)
			results = rawjson.Put(results, "", text, `"}`)
			attachments = append(attachments, others...)
		}
		flush()
		if attachments != nil {
			add("user", attachments)
		}
	}
	n := len(list)
	if n == 0 || list[n-1].role == "assistant" || list[n-1].role == "system" && n == 1 {
		// Providers reject any other end, or treat it as a finished turn.
		add("user", []conversation.Part{{Text: []byte(conversation.Continue)}})
	}
	e.out = append(e.out, '[')
	for i := range list {
		var err error
		if e.out, err = e.appendMessage(e.out, &list[i]); err != nil {
			return err
		}
	}
	e.out = append(bytes.TrimSuffix(e.out, []byte(",")), ']')
	return nil
}

// wordsOf returns the message of a turn, or nil if nothing of the turn is for the line.
func (e *encoder) wordsOf(t *conversation.Turn) *chatMessage {
	m := &chatMessage{role: roles[t.Role]}
	var words []conversation.Part
	for i := range t.Parts {
		p := &t.Parts[i]
		switch {
		case p.Kind == conversation.Thinking:
			if t.Current && !e.target.NoReasoning && !p.Signature.IsClaude() {
				m.reasoning = append(m.reasoning, p.Text...)
			}
		case p.Kind == conversation.ToolCall:
			m.calls = e.appendCall(m.calls, p)
		case p.Media == nil || !p.Media.Generated:
			words = append(words, *p)
		}
	}
	switch {
	case words == nil && m.calls == nil:
		return nil
	case e.target.NeedsReasoning && t.Current && m.calls != nil && m.reasoning == nil && !e.disablesThinking():
		m.reasoning = []byte(" ") // the reasoning came from another line
	}
	m.groups = [][]conversation.Part{words}
	return m
}

// lineID returns the line's id of a call.
func lineID(c *conversation.CallPart) []byte {
	return rawjson.Quote(conversation.ShortID(c.ID, maxIDLength))
}

// appendCall appends a comma and a call, with the signature of the reasoning before it if the line's account
// made the signature.
func (e *encoder) appendCall(dst []byte, p *conversation.Part) []byte {
	dst = rawjson.Put(dst, `,{"id":`, lineID(p.Call), `,"type":"function","function":{"name":`)
	dst = rawjson.Put(dst, "", rawjson.Quote(e.NameOnLine(p.Call.Name, p.Call.Namespace)), `,"arguments":`)
	dst = rawjson.Put(dst, "", p.Call.FunctionText(), "}")
	if signature := p.Signature.Open(e.id, wire.FormChat); signature != nil {
		dst = rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":"`, signature, `"}}`)
	}
	return append(dst, '}')
}

// resultOf returns the text of a result, and its images and files after a line with the call's id.
func (e *encoder) resultOf(p *conversation.Part) (text []byte, others []conversation.Part) {
	text, others = p.ResultText()
	if p.Result.Error {
		text = append([]byte("Error: "), text...)
	}
	if others == nil {
		return text, nil
	}
	label, end := "From the result of the tool call ", ":"
	if e.Client == wire.FormResponses {
		label = "Result of the call "
		if text == nil {
			text = []byte("(shown in the next message)")
		}
	}
	id := rawjson.Contents(rawjson.Quote(p.Call.ID))
	return text, append([]conversation.Part{{Text: rawjson.Put(nil, label, id, end)}}, others...)
}

// appendMessage appends a message and a comma.
func (e *encoder) appendMessage(dst []byte, m *chatMessage) ([]byte, error) {
	if m.role == "tool" {
		return append(append(dst, m.calls[1:]...), ','), nil
	}
	dst = rawjson.Put(dst, `{"role":"`, m.role, `","content":`)
	dst, err := e.appendContent(dst, m)
	if err != nil {
		return nil, err
	}
	if m.reasoning != nil {
		dst = rawjson.Put(dst, `,"reasoning_content":"`, m.reasoning, `"`)
	}
	if m.calls != nil {
		dst = rawjson.Put(dst, `,"tool_calls":`, conversation.List(m.calls), "")
	}
	return append(dst, "},"...), nil
}

// appendContent appends a content. Where possible, text parts become one string, because every provider
// accepts a string.
func (e *encoder) appendContent(dst []byte, m *chatMessage) ([]byte, error) {
	parts, whole := 0, true
	for _, group := range m.groups {
		parts += len(group)
		for i := range group {
			whole = whole && group[i].Media == nil
		}
	}
	merges := e.Client == wire.FormMessages
	switch {
	case parts == 0:
		return append(dst, "null"...), nil
	case !whole && m.role != "user":
		return nil, conversation.Unsupported(partAt(m), "`{param}` must be text for this model.")
	case whole && (merges || parts == 1 || m.role != "user"):
		// In the messages form, the texts of an assistant are one text, and other texts are paragraphs. In
		// other forms, texts are lines.
		inside := `\n`
		if merges {
			inside = paragraph
			if m.role == "assistant" {
				inside = ""
			}
		}
		dst = append(dst, '"')
		for k, group := range m.groups {
			if k > 0 && len(group) > 0 && dst[len(dst)-1] != '"' {
				dst = append(dst, paragraph...)
			}
			for i := range group {
				if i > 0 {
					dst = append(dst, inside...)
				}
				dst = append(dst, group[i].Text...)
			}
		}
		return append(dst, '"'), nil
	}
	sep := byte('[')
	for _, group := range m.groups {
		for i := range group {
			var err error
			if dst, err = e.appendPart(append(dst, sep), &group[i]); err != nil {
				return nil, err
			}
			sep = ','
		}
	}
	return append(dst, ']'), nil
}

// partAt returns the path of the first part other than text.
func partAt(m *chatMessage) string {
	for _, group := range m.groups {
		for i := range group {
			if group[i].Media != nil {
				return group[i].At
			}
		}
	}
	return ""
}

// appendPart appends a part of a user's message.
func (e *encoder) appendPart(dst []byte, p *conversation.Part) ([]byte, error) {
	switch p.Kind {
	case conversation.Image:
		dst = rawjson.Put(dst, `{"type":"image_url","image_url":{"url":`, p.Media.Address, "")
		if p.Media.Detail != nil {
			dst = rawjson.AppendMember(dst, "detail", p.Media.Detail)
		}
		return append(dst, "}}"...), nil
	case conversation.File:
		if conversation.HasScheme(p.Media.Address) {
			return nil, conversation.NotFetched(p.Media.At)
		}
		dst = append(dst, `{"type":"file","file":{`...)
		members := conversation.ObjectWriter{}
		if e.Client == wire.FormMessages && p.Media.Name != nil {
			members.Add("filename", string(p.Media.Name))
		}
		members.Add("file_data", string(p.Media.Address))
		if e.Client != wire.FormMessages && p.Media.Name != nil {
			members.Add("filename", string(p.Media.Name))
		}
		return append(append(dst, members...), "}}"...), nil
	}
	return rawjson.Put(dst, `{"type":"text","text":"`, p.Text, `"}`), nil
}
