package chatresponses

import (
	"bytes"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/item"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream writes a responses stream as one of chat completions, with a chunk for each step of the
// answer. It is not safe for concurrent use.
type stream struct {
	head         []byte // of every chunk, up to its delta
	tail         string // of every chunk, after its choice
	includeUsage bool   // the client asked for usage

	output  output
	hasRole bool // the role was sent
}

// output is the state of an answer being written, in a stream or whole.
type output struct {
	id            wire.Identity
	reader        *item.Reader
	json          bool // the answer is JSON, so only its first message counts
	logprobs      bool // the client asked for logprobs
	lastText      int  // number of the item of the last text, from 1
	lastReasoning int  // number of the item of the last reasoning, from 1
	details       int  // number of seals of reasoning sent
}

// newStream returns the writer of the answer to r.
func newStream(r chatOnResponses) *stream {
	w := &stream{tail: "}]}\n\n", includeUsage: r.IncludeUsage, output: r.newOutput()}
	if w.includeUsage {
		w.tail = "}],\"usage\":null}\n\n"
	}
	w.head = append(piece.AppendChatHead([]byte("data: "), r.id, "chat.completion.chunk"), `[{"index":0,"delta":{`...)
	return w
}

func (r chatOnResponses) newOutput() output {
	return output{id: r.id, reader: item.NewReader(r.id, r.names()), json: r.asksJSON(), logprobs: r.asksLogprobs()}
}

// Append implements wire.Writer. Comments become comments.
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
	w.output.reader.Event(e.Name, data, func(s item.AnswerStep) { dst = w.step(dst, s) })
	return dst
}

// step appends one step as a chunk.
func (w *stream) step(dst []byte, s item.AnswerStep) []byte {
	delta := w.output.appendDelta(nil, s)
	if delta == nil {
		return dst
	}
	dst = append(w.begin(dst), delta...)
	if logprobs := w.output.logprobsOf(s); logprobs != nil {
		dst = rawjson.Put(dst, `},"logprobs":{"content":[`, logprobs, `],"refusal":null`)
	}
	return rawjson.Put(dst, `},"finish_reason":null`, w.tail, "")
}

// begin appends the start of a chunk, up to the members of its delta. The first has the role.
func (w *stream) begin(dst []byte) []byte {
	dst = append(dst, w.head...)
	if !w.hasRole {
		w.hasRole = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// logprobsOf returns the logprobs of a step without brackets, or nil. Those of a stream have no
// bytes of tokens.
func (o *output) logprobsOf(s item.AnswerStep) []byte {
	if !o.logprobs || s.Kind != item.Text || len(s.Logprobs) <= 2 || s.Logprobs[0] != '[' || !rawjson.IsValid(s.Logprobs) {
		return nil
	}
	return piece.AppendLogprobs(nil, s.Logprobs, func(dst, _ []byte) []byte { return append(dst, "null"...) })
}

// appendDelta appends the members of the delta for a step. It returns nil for an empty delta.
func (o *output) appendDelta(dst []byte, s item.AnswerStep) []byte {
	switch s.Kind {
	case item.ReasoningText:
		dst = append(dst, `"reasoning_content":"`...)
		return rawjson.Put(dst, o.reasoningGap(s), s.Text, `"`)
	case item.ReasoningEnd:
		if detail := o.detail(s.Text); detail != nil {
			return rawjson.Put(dst, `"reasoning_details":[`, detail, "]")
		}
	case item.Text:
		if gap, ok := o.textGap(s); ok {
			return rawjson.Put(append(dst, `"content":"`+gap...), "", s.Text, `"`)
		}
	case item.Refusal:
		return rawjson.Put(dst, `"refusal":"`, s.Text, `"`)
	case item.Call:
		return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, true, nil), "}]"...)
	case item.Arguments:
		return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, false, s.Text), "}]"...)
	case item.CallEnd:
		if !s.Call.HasArguments && !s.Call.Custom {
			return append(o.appendCall(append(dst, `"tool_calls":[{"index":`...), s.Call, false, []byte("{}")), "}]"...)
		}
	}
	return nil
}

// paragraph separates texts of different items.
const paragraph = `\n\n`

// reasoningGap returns the separator before a piece of reasoning.
func (o *output) reasoningGap(s item.AnswerStep) string {
	before := o.lastReasoning
	o.lastReasoning = s.Item + 1
	if before == 0 || before == o.lastReasoning {
		return ""
	}
	return paragraph
}

// textGap returns the separator before a text. It returns false for a text to be left out: in an
// answer in JSON only the first message counts.
func (o *output) textGap(s item.AnswerStep) (string, bool) {
	before := o.lastText
	switch {
	case before == 0 || before == s.Item+1:
		o.lastText = s.Item + 1
		return "", true
	case o.json:
		return "", false
	}
	o.lastText = s.Item + 1
	return paragraph, true
}

// detail returns the reasoning detail with sealed reasoning, the contents of a JSON string, or nil.
func (o *output) detail(sealed []byte) []byte {
	if len(sealed) == 0 {
		return nil
	}
	out := rawjson.Put(nil, `{"type":"reasoning.encrypted","data":"`, sealed, `","format":"openai-responses-v1","index":`)
	o.details++
	return append(strconv.AppendInt(out, int64(o.details-1), 10), '}')
}

// appendCall appends the members of a call from its number on: its start or a piece of its
// arguments.
func (o *output) appendCall(dst []byte, c *item.ToolCall, begins bool, text []byte) []byte {
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

// callID returns a call's id, a JSON string.
func (o *output) callID(c *item.ToolCall) []byte {
	if c.ID != nil {
		return c.ID
	}
	return rawjson.Quote(piece.NewCallID(o.id, c.Number))
}

// finish returns the finish_reason.
func (o *output) finish() string { return piece.FinishReason(o.reader.Finish(), o.reader.HasCalls()) }

func (w *stream) End(dst []byte, u wire.Usage) []byte {
	dst = w.begin(dst)
	dst = bytes.TrimSuffix(dst, []byte(","))
	dst = rawjson.Put(dst, `},"finish_reason":"`, w.output.finish(), `"`)
	dst = append(dst, w.tail...)
	if w.includeUsage {
		dst = piece.AppendUsageChunk(dst, w.output.id, u)
	}
	return append(dst, sse.Done...)
}

func (w *stream) Fail(dst []byte, err *fault.Error) []byte {
	return append(dst, completions.ErrorEvent(err.Object())...)
}
