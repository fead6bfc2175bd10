package chatresponses

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// wholeAnswer returns an answer as a chat completion with the usage u. It returns ErrMalformed if
// body is not a JSON object.
func (r chatOnResponses) wholeAnswer(body []byte, u wire.Usage) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	o := r.newOutput()
	var reasoning, details, text, refusal, logprobs []byte
	var calls wholeCalls
	o.reader.Whole(object, func(s item.AnswerStep) {
		switch s.Kind {
		case item.ReasoningText:
			reasoning = append(append(reasoning, o.reasoningGap(s)...), s.Text...)
		case item.ReasoningEnd:
			if detail := o.detail(s.Text); detail != nil {
				details = append(append(details, ','), detail...)
			}
		case item.Text:
			if gap, ok := o.textGap(s); ok {
				text = append(append(text, gap...), s.Text...)
			}
			if more := o.logprobsOf(s); more != nil {
				logprobs = append(append(logprobs, ','), more...)
			}
		case item.Refusal:
			refusal = append(refusal, s.Text...)
		case item.Call, item.Arguments:
			calls.add(s)
		}
	})
	out := make([]byte, 0, len(body)+512)
	out = append(piece.AppendChatHead(out, r.id, "chat.completion"), `[{"index":0,"message":{"role":"assistant","content":`...)
	list := o.appendCalls(nil, calls)
	out = appendTextOr(out, text, text == nil && (list != nil || refusal != nil))
	out = appendTextOr(append(out, `,"refusal":`...), refusal, refusal == nil)
	if len(reasoning) > 0 {
		out = rawjson.Put(out, `,"reasoning_content":"`, reasoning, `"`)
	}
	if details != nil {
		out = rawjson.AppendMember(out, "reasoning_details", item.Parts(details))
	}
	if list != nil {
		out = rawjson.AppendMember(out, "tool_calls", item.Parts(list))
	}
	out = append(out, `},"logprobs":`...)
	if logprobs != nil {
		out = rawjson.Put(out, `{"content":`, item.Parts(logprobs), `,"refusal":null}`)
	} else {
		out = append(out, "null"...)
	}
	out = rawjson.Put(out, `,"finish_reason":"`, o.finish(), `"}],"usage":`)
	return append(piece.AppendChatUsage(out, u), '}'), nil
}

// appendTextOr appends a text, the contents of a JSON string, or null.
func appendTextOr(dst, text []byte, null bool) []byte {
	if null {
		return append(dst, "null"...)
	}
	return rawjson.Put(dst, `"`, text, `"`)
}

// wholeCalls are the calls of an answer, in order.
type wholeCalls []wholeCall

// wholeCall is a call and its arguments, the contents of a JSON string.
type wholeCall struct {
	call *item.ToolCall
	text []byte
}

func (c *wholeCalls) add(s item.AnswerStep) {
	if s.Kind == item.Call {
		*c = append(*c, wholeCall{call: s.Call})
		return
	}
	last := &(*c)[s.Call.Number]
	last.text = append(last.text, s.Text...)
}

// appendCalls appends the calls, each after a comma. In a truncated answer, a call with truncated
// arguments is left out.
func (o *output) appendCalls(dst []byte, calls wholeCalls) []byte {
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
