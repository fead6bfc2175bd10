package chatresponses

import (
	"bytes"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream writes a stream of responses as one of chat completions: a chunk for
// each step of the answer. Its end waits for End. Not for concurrent use.
type stream struct {
	head  []byte // of every chunk, up to its delta
	tail  string // of every chunk, behind its choice
	usage bool   // the client asked for it

	said  said
	begun bool // the role was told
}

// said is what of an answer has been said so far, in a stream or whole.
type said struct {
	id       wire.Identity
	reader   *item.Reader
	json     bool // the answer is JSON: one message
	logprobs bool // the client asked for them
	texts    int  // the item whose text came last, from 1; 0: none
	thoughts int  // the same of what the model thought
	details  int  // how many seals of reasoning were told
}

// newStream makes the writer of the stream that answers r.
func newStream(r chatOnResponses) *stream {
	w := &stream{tail: "}]}\n\n", usage: r.IncludeUsage, said: r.newSaid()}
	if w.usage {
		w.tail = "}],\"usage\":null}\n\n"
	}
	w.head = append(appendHead([]byte("data: "), r.id, "chat.completion.chunk"), `[{"index":0,"delta":{`...)
	return w
}

func (r chatOnResponses) newSaid() said {
	return said{id: r.id, reader: item.NewReader(r.id, r.names()), json: r.asksJSON(), logprobs: r.asksLogprobs()}
}

// appendHead begins an object of chat completions, up to its choices.
func appendHead(dst []byte, id wire.Identity, object string) []byte {
	dst = rawjson.Put(dst, `{"id":`, rawjson.Quote(piece.ChatID(id)), "")
	dst = rawjson.Put(dst, `,"object":"`, object, `","created":`)
	dst = strconv.AppendInt(dst, id.Created, 10)
	return rawjson.Put(dst, `,"model":`, rawjson.Quote(id.Model), `,"choices":`)
}

// Append appends the chunks of an event that the meter has read. Comments become
// comments.
func (w *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
		if bytes.HasPrefix(e.Raw, []byte(":")) {
			dst = append(dst, sse.KeepAlive...)
		}
		return dst
	case data[0] != '{' || f.Err != nil:
		return dst
	}
	w.said.reader.Event(e.Name, data, func(s item.AnswerStep) { dst = w.step(dst, s) })
	return dst
}

// step writes one step as a chunk.
func (w *stream) step(dst []byte, s item.AnswerStep) []byte {
	delta := w.said.appendDelta(nil, s)
	if delta == nil {
		return dst
	}
	dst = append(w.begin(dst), delta...)
	if odds := w.said.odds(s); odds != nil {
		dst = rawjson.Put(dst, `},"logprobs":{"content":[`, odds, `],"refusal":null`)
	}
	return rawjson.Put(dst, `},"finish_reason":null`, w.tail, "")
}

// begin begins a chunk, up to the members of its delta. The first tells the role.
func (w *stream) begin(dst []byte) []byte {
	dst = append(dst, w.head...)
	if !w.begun {
		w.begun = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// odds are the logprobs to be told with a step, without brackets; nil: none. A
// stream's come without the bytes of tokens.
func (o *said) odds(s item.AnswerStep) []byte {
	if !o.logprobs || s.Kind != item.Text || len(s.Logprobs) <= 2 || s.Logprobs[0] != '[' || !rawjson.IsValid(s.Logprobs) {
		return nil
	}
	return piece.AppendLogprobs(nil, s.Logprobs, func(dst, _ []byte) []byte { return append(dst, "null"...) })
}

// appendDelta appends the members of a delta for a step; nil where it says
// nothing.
func (o *said) appendDelta(dst []byte, s item.AnswerStep) []byte {
	switch s.Kind {
	case item.Thought:
		dst = append(dst, `"reasoning_content":"`...)
		return rawjson.Put(dst, o.thoughtGap(s), s.Text, `"`)
	case item.Thinking:
		if detail := o.detail(s.Text); detail != nil {
			return rawjson.Put(dst, `"reasoning_details":[`, detail, "]")
		}
	case item.Text:
		if gap, ok := o.gap(s); ok {
			return rawjson.Put(append(dst, `"content":"`+gap...), "", s.Text, `"`)
		}
	case item.Refusal:
		return rawjson.Put(dst, `"refusal":"`, s.Text, `"`)
	case item.Call:
		return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, true, nil), "}]"...)
	case item.Arguments:
		return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, false, s.Text), "}]"...)
	case item.CallEnd:
		if !s.Call.Said && !s.Call.Custom {
			return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, false, []byte("{}")), "}]"...)
		}
	}
	return nil
}

// between stands between what an answer says at one time and at another.
const between = `\n\n`

// thoughtGap is what stands between a thought and the one before it.
func (o *said) thoughtGap(s item.AnswerStep) string {
	before := o.thoughts
	o.thoughts = s.Item + 1
	if before == 0 || before == o.thoughts {
		return ""
	}
	return between
}

// gap is what stands between a text and the one before it; false where the text
// is left out: of an answer that is JSON the first message counts.
func (o *said) gap(s item.AnswerStep) (string, bool) {
	before := o.texts
	switch {
	case before == 0 || before == s.Item+1:
		o.texts = s.Item + 1
		return "", true
	case o.json:
		return "", false
	}
	o.texts = s.Item + 1
	return between, true
}

// detail is what carries sealed reasoning, the inside of a JSON string; nil where
// there is none.
func (o *said) detail(sealed []byte) []byte {
	if len(sealed) == 0 {
		return nil
	}
	out := rawjson.Put(nil, `{"type":"reasoning.encrypted","data":"`, sealed, `","format":"openai-responses-v1","index":`)
	o.details++
	return append(strconv.AppendInt(out, int64(o.details-1), 10), '}')
}

// appendCall appends the members of a call from its number on: its beginning or
// a piece of its arguments.
func (o *said) appendCall(dst []byte, c *item.ToolCall, begins bool, text []byte) []byte {
	dst = strconv.AppendInt(dst, int64(c.Number), 10)
	kind, member := "function", "arguments"
	if c.Custom {
		kind, member = "custom", "input"
	}
	if begins {
		dst = rawjson.Put(dst, `,"id":`, o.callID(c), `,"type":"`)
		dst = append(dst, kind...)
		dst = rawjson.Put(dst, `","`, kind, `":{"name":"`)
		dst = rawjson.Put(dst, "", c.Name, `","`)
	} else {
		dst = rawjson.Put(dst, `,"`, kind, `":{"`)
	}
	dst = rawjson.Put(dst, "", member, `":"`)
	return rawjson.Put(dst, "", text, `"}`)
}

// callID is a call's id, a JSON string.
func (o *said) callID(c *item.ToolCall) []byte {
	if c.ID != nil {
		return c.ID
	}
	return rawjson.Quote(piece.MadeCallID(o.id, c.Number))
}

// finish is the finish_reason.
func (o *said) finish() string {
	switch o.reader.Finish() {
	case form.FinishLimit:
		return "length"
	case form.FinishFiltered:
		return "content_filter"
	}
	if o.reader.Called() {
		return "tool_calls"
	}
	return "stop"
}

// End appends the end of the choice, the usage chunk when it was asked for, and
// what closes the stream.
func (w *stream) End(dst []byte, u wire.Usage) []byte {
	dst = w.begin(dst)
	dst = bytes.TrimSuffix(dst, []byte(","))
	dst = rawjson.Put(dst, `},"finish_reason":"`, w.said.finish(), `"`)
	dst = append(dst, w.tail...)
	if w.usage {
		dst = append(appendHead(append(dst, "data: "...), w.said.id, "chat.completion.chunk"), `[],"usage":`...)
		dst = append(piece.AppendChatUsage(dst, u), "}\n\n"...)
	}
	return append(dst, sse.Done...)
}

// Fail appends the event that reports an error.
func (w *stream) Fail(dst []byte, err *fault.Error) []byte {
	return append(dst, completions.ErrorEvent(err.Object())...)
}
