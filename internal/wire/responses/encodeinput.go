package responses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/rawjson"
)

// maxIDLength is the limit on the id of a call in bytes.
const maxIDLength = 64

// input returns the items of the history. Items are sent without ids, and every call has a result
// directly after the calls of its turn.
func (e *encoder) input() ([]byte, error) {
	turns, err := e.Repair()
	if err != nil {
		return nil, err
	}
	o := inputWriter{encoder: e, ids: conversation.CallIDs{Clean: func(id string, room int) string {
		return conversation.ShortID(id, maxIDLength-room)
	}}}
	for i := range turns {
		t := &turns[i]
		switch t.Role {
		case conversation.Assistant:
			err = o.assistant(t)
		case conversation.Results:
			err = o.results(t)
		case conversation.System:
			o.reasoning = nil
			for k := range t.Parts {
				o.out = e.message(o.out, e.systemRole(), conversation.Quoted(t.Parts[k].Text))
			}
			o.lastIsText = false
		default:
			err = o.user(t)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.lastIsText || len(o.out) == 0 { // no line accepts an assistant's text as the last item
		o.out = e.message(o.out, "user", rawjson.Quote(conversation.Continue))
	}
	return conversation.List(e.withHint(o.out)), nil
}

// inputWriter writes items, each with a comma before it.
type inputWriter struct {
	*encoder
	out        []byte
	reasoning  []byte // reasoning items, to be added before the next item of the assistant
	lastIsText bool   // the last item is a text of the assistant
	ids        conversation.CallIDs
}

// systemRole returns the role of instructions.
func (e *encoder) systemRole() string {
	if e.target.OpenAI {
		return "developer"
	}
	return "system"
}

// message appends a message with a content.
func (e *encoder) message(dst []byte, role string, content []byte) []byte {
	dst = rawjson.Put(dst, `,{"type":"message","role":"`, role, `","content":`)
	return rawjson.Put(dst, "", content, "}")
}

// user adds a message of the user: a string, accepted everywhere, or parts.
func (o *inputWriter) user(t *conversation.Turn) error {
	o.reasoning, o.lastIsText = nil, false
	if len(t.Parts) == 1 && t.Parts[0].Media == nil && (len(t.Parts[0].Mark.Raw) == 0 || !o.target.OpenAI) {
		o.out = o.message(o.out, "user", conversation.Quoted(t.Parts[0].Text))
		return nil
	}
	list, err := o.parts(t.Parts)
	o.out = o.message(o.out, "user", list)
	return err
}

// parts returns parts as a list.
func (e *encoder) parts(parts []conversation.Part) ([]byte, error) {
	var list []byte
	for i := range parts {
		p := &parts[i]
		switch m := p.Media; {
		case m == nil && len(p.Text) == 0:
			continue
		case m == nil:
			list = rawjson.Put(list, `,{"type":"input_text","text":"`, p.Text, `"`)
		case p.Kind == conversation.Image:
			list = rawjson.Put(list, `,{"type":"input_image","image_url":`, m.Address, `,"detail":`)
			list = rawjson.AppendOr(list, m.Detail, `"auto"`)
		case conversation.HasScheme(m.Address):
			if !e.target.OpenAI {
				return nil, conversation.NotFetched(m.At)
			}
			list = rawjson.Put(list, `,{"type":"input_file","file_url":`, m.Address, "")
		default:
			list = rawjson.AppendOr(append(list, `,{"type":"input_file","filename":`...), m.Name, `"document.pdf"`)
			list = rawjson.AppendMember(list, "file_data", m.Address)
		}
		if p.Mark.Raw != nil && e.target.OpenAI {
			list = rawjson.AppendMember(list, "prompt_cache_breakpoint", p.Mark.Raw)
		}
		list = append(list, '}')
	}
	return conversation.List(list), nil
}

// assistant adds the assistant's reasoning, texts and calls.
func (o *inputWriter) assistant(t *conversation.Turn) error {
	phase := `,"phase":"final_answer"}`
	for i := range t.Parts {
		if t.Parts[i].Kind == conversation.ToolCall {
			phase = `,"phase":"commentary"}`
		}
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case conversation.Thinking:
			o.addReasoning(p)
		case conversation.ToolCall:
			o.call(p)
		case conversation.Image, conversation.File:
			if !p.Media.Generated {
				return conversation.Unsupported(p.At, "`{param}` must be text for this model.")
			}
		default: // a refusal is sent as text, because refusal parts need ids
			o.flush()
			o.out = o.message(o.out, "assistant", conversation.Quoted(p.Text))
			if o.target.OpenAI {
				o.out = append(o.out[:len(o.out)-1], phase...)
			}
			o.lastIsText = true
		}
	}
	return nil
}

// flush adds the pending reasoning before an item of the assistant.
func (o *inputWriter) flush() { o.out, o.reasoning = append(o.out, o.reasoning...), nil }

// addReasoning adds the assistant's reasoning if this line can read it.
func (o *inputWriter) addReasoning(p *conversation.Part) {
	encrypted := p.Signature.Open(o.id, wire.FormResponses)
	if encrypted == nil || o.target.NoEncrypted || o.target.NoSealed {
		return
	}
	o.reasoning = append(o.reasoning, `,{"type":"reasoning","summary":[`...)
	if len(p.Text) > 0 {
		o.reasoning = rawjson.Put(o.reasoning, `{"type":"summary_text","text":"`, p.Text, `"}`)
	}
	o.reasoning = rawjson.Put(o.reasoning, `],"encrypted_content":"`, encrypted, `"}`)
}

// call adds a call of a function or of a custom tool.
func (o *inputWriter) call(p *conversation.Part) {
	o.flush()
	kind, member, text := "function_call", "arguments", p.Call.FunctionText()
	if o.isCustom(p.Call.Custom) {
		kind, member, text = "custom_tool_call", "input", p.Call.Arguments
		if !rawjson.IsText(text) {
			text = []byte(`""`)
		}
	}
	o.out = rawjson.Put(o.out, `,{"type":"`, kind, `","call_id":`)
	o.out = rawjson.Put(o.out, "", rawjson.Quote(o.ids.Of(p.Call)), `,"name":`)
	o.out = append(o.out, rawjson.Quote(o.NameOnLine(p.Call.Name, p.Call.Namespace))...)
	o.out = append(rawjson.AppendMember(o.out, member, text), '}')
	o.lastIsText = false
}

// results adds the results of calls: one string if a result is only text, or else parts.
func (o *inputWriter) results(t *conversation.Turn) error {
	o.lastIsText = false
	for i := range t.Parts {
		p := &t.Parts[i]
		kind := "function_call_output"
		if o.isCustom(p.Call.Custom) {
			kind = "custom_tool_call_output"
		}
		parts := p.Result.Parts
		if p.Result.Error {
			first := conversation.Part{Text: []byte("Error: ")}
			if len(parts) > 0 && parts[0].Kind == conversation.Text {
				first.Text, parts = append(first.Text, parts[0].Text...), parts[1:]
			}
			parts = append([]conversation.Part{first}, parts...)
		}
		shown := conversation.Part{Result: &conversation.ResultPart{Parts: parts}}
		text, others := shown.ResultText()
		output := conversation.Quoted(text)
		if others != nil {
			var err error
			if output, err = o.parts(parts); err != nil {
				return err
			}
		}
		o.out = rawjson.Put(o.out, `,{"type":"`, kind, `","call_id":`)
		o.out = rawjson.Put(o.out, "", rawjson.Quote(o.ids.Of(p.Call)), "")
		o.out = append(rawjson.AppendMember(o.out, "output", output), '}')
	}
	return nil
}
