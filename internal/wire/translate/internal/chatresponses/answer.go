package chatresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// wholeAnswer returns a whole answer as a chat completion with u as its usage;
// ErrMalformed when body is no JSON object.
func (r chatOnResponses) wholeAnswer(body []byte, u wire.Usage) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	o := r.newSaid()
	var thought, details, text, refusal, odds []byte
	var calls wholeCalls
	o.reader.Whole(object, func(s item.AnswerStep) {
		switch s.Kind {
		case item.Thought:
			thought = append(append(thought, o.thoughtGap(s)...), s.Text...)
		case item.Thinking:
			if detail := o.detail(s.Text); detail != nil {
				details = append(append(details, ','), detail...)
			}
		case item.Text:
			if gap, ok := o.gap(s); ok {
				text = append(append(text, gap...), s.Text...)
			}
			if more := o.odds(s); more != nil {
				odds = append(append(odds, ','), more...)
			}
		case item.Refusal:
			refusal = append(refusal, s.Text...)
		case item.Call, item.Arguments:
			calls.take(s)
		}
	})
	out := make([]byte, 0, len(body)+512)
	out = append(appendHead(out, r.id, "chat.completion"), `[{"index":0,"message":{"role":"assistant","content":`...)
	list := o.appendCalls(nil, calls)
	out = appendTextOr(out, text, text == nil && (list != nil || refusal != nil))
	out = appendTextOr(append(out, `,"refusal":`...), refusal, refusal == nil)
	if len(thought) > 0 {
		out = rawjson.Put(out, `,"reasoning_content":"`, thought, `"`)
	}
	if details != nil {
		out = rawjson.AppendMember(out, "reasoning_details", item.Parts(details))
	}
	if list != nil {
		out = rawjson.AppendMember(out, "tool_calls", item.Parts(list))
	}
	out = append(out, `},"logprobs":`...)
	if odds != nil {
		out = rawjson.Put(out, `{"content":`, item.Parts(odds), `,"refusal":null}`)
	} else {
		out = append(out, "null"...)
	}
	out = rawjson.Put(out, `,"finish_reason":"`, o.finish(), `"}],"usage":`)
	return append(piece.AppendChatUsage(out, u), '}'), nil
}

// appendTextOr appends a text, the inside of a JSON string, or null.
func appendTextOr(dst, text []byte, null bool) []byte {
	if null {
		return append(dst, "null"...)
	}
	return rawjson.Put(dst, `"`, text, `"`)
}

// wholeCalls are the calls of a whole answer, in order.
type wholeCalls []wholeCall

// wholeCall is a call and its arguments, the inside of a JSON string.
type wholeCall struct {
	call *item.ToolCall
	text []byte
}

func (c *wholeCalls) take(s item.AnswerStep) {
	if s.Kind == item.Call {
		*c = append(*c, wholeCall{call: s.Call})
		return
	}
	last := &(*c)[s.Call.Number]
	last.text = append(last.text, s.Text...)
}

// appendCalls appends the calls, each behind a comma. Of an answer that was cut
// those are left out whose arguments are.
func (o *said) appendCalls(dst []byte, calls wholeCalls) []byte {
	for _, c := range calls {
		if !c.call.Custom {
			if len(c.text) == 0 {
				c.text = []byte("{}")
			}
			if o.reader.Finish() == form.FinishLimit && !rawjson.IsValid(rawjson.AppendUnquoted(nil, c.text)) {
				continue
			}
		}
		dst = rawjson.Put(dst, `,{"id":`, o.callID(c.call), `,"type":"`)
		if c.call.Custom {
			dst = rawjson.Put(dst, `custom","custom":{"name":"`, c.call.Name, `","input":"`)
		} else {
			dst = rawjson.Put(dst, `function","function":{"name":"`, c.call.Name, `","arguments":"`)
		}
		dst = rawjson.Put(dst, "", c.text, `"}}`)
	}
	return dst
}
