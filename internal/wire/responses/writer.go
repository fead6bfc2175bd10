package responses

import (
	"bytes"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// writer writes an answer of a line of another form: items open and close in order, every text is
// repeated as a whole when it ends, and the last event has the whole response.
type writer struct {
	object   Object
	id       wire.Identity
	idSuffix string
	silent   bool // collect the items without writing events

	next         int64 // sequence number
	started      bool
	ended        bool
	beforeFinish *position // set at the finish, since the bytes after it wait for the settlement

	items []*outputItem
	open  *outputItem // the open message or reasoning
	calls []*outputItem
	ids   map[string]bool

	room   int    // bytes of text left
	reason string // of an incomplete answer
}

const (
	// maxOutputText bounds the text of an answer kept for its repetition at the end. A longer
	// answer is cut off as if by the token limit.
	maxOutputText = 64 << 20
	// maxOutputItems bounds the items of an answer in the same way.
	maxOutputItems = 4 << 10
)

// Incomplete reasons.
const (
	reasonLimit  = "max_output_tokens"
	reasonFilter = "content_filter"
)

// Writer returns the writer of the answer to a request from a line of another form.
func (r *Request) Writer(id wire.Identity, _ wire.Form) conversation.Writer {
	return &writer{object: NewObject(id, r), id: id, idSuffix: conversation.IDSuffix(id), ids: make(map[string]bool), room: maxOutputText}
}

// position is the progress of a stream at its finish. If the settlement fails, the bytes after it
// are dropped, and the error event continues from there.
type position struct {
	next    int64
	started bool
}

// Write implements conversation.Writer.
func (s *writer) Write(dst []byte, e conversation.Event) []byte {
	switch {
	case e.Kind == conversation.Settle && s.beforeFinish == nil:
		s.beforeFinish = &position{s.next, s.started}
	case s.ended || e.Choice > 0:
	case e.Kind == conversation.Idle && s.started:
		return append(dst, sse.KeepAlive...)
	case e.Kind == conversation.Begin:
		return s.begin(dst)
	case e.Kind == conversation.Start:
		if e.Output.Kind == conversation.ToolCall {
			dst = s.openCall(s.begin(dst), e.Output)
		}
		return s.delta(dst, e)
	case e.Kind == conversation.Delta:
		return s.delta(dst, e)
	case e.Kind == conversation.End:
		if item := s.callOf(e.Output); item != nil {
			item.ended = true
		}
		if e.Output.Kind == conversation.Thinking && e.Output.Signature.Vendor == wire.FormInteractions {
			return s.sealReasoning(dst, e.Output)
		}
	case e.Kind == conversation.Finish:
		dst = s.begin(dst)
		switch e.Finish {
		case form.FinishLimit:
			s.setReason(reasonLimit)
		case form.FinishFiltered:
			s.setReason(reasonFilter)
		}
	}
	return dst
}

// delta continues a part.
func (s *writer) delta(dst []byte, e conversation.Event) []byte {
	switch text := withoutSurrogates(e.Text); e.Output.Kind {
	case conversation.Text:
		return s.text(dst, text, false, e.Logprobs)
	case conversation.Refusal:
		return s.text(dst, text, true, nil)
	case conversation.Thinking:
		return s.reasoning(dst, text)
	case conversation.ToolCall:
		if item := s.callOf(e.Output); item != nil && item.json == nil && s.reserve(len(text)) {
			item.arguments = append(item.arguments, text...)
			return s.sendArguments(dst, item)
		}
	}
	return dst
}

// End implements conversation.Writer.
func (s *writer) End(dst []byte, u wire.Usage) []byte {
	if s.ended {
		return dst
	}
	dst = s.closeAll(s.begin(dst))
	state := s.state(u)
	dst = append(s.event(dst, "response."+state.Status), `,"response":`...)
	s.ended = true
	return endEvent(s.object.Append(dst, state))
}

// Fail implements conversation.Writer. Bytes written since the finish were not sent.
func (s *writer) Fail(dst []byte, err *fault.Error) []byte {
	if s.beforeFinish != nil {
		s.next, s.started = s.beforeFinish.next, s.beforeFinish.started
	}
	dst = s.begin(dst)
	s.ended = true
	return s.object.AppendFailed(dst, s.next, err)
}

// Whole implements conversation.Writer.
func (s *writer) Whole(a *conversation.Answer, u wire.Usage) []byte {
	s.silent, s.started = true, true
	if len(a.Choices) > 0 {
		choice := &a.Choices[0]
		for _, o := range choice.Outputs {
			var logprobs []byte
			if len(o.Logprobs) > 0 {
				logprobs = rawjson.Put(nil, "[", o.Logprobs, "]")
			}
			s.Write(nil, conversation.Event{Kind: conversation.Start, Output: o, Text: o.Text, Logprobs: logprobs})
			s.Write(nil, conversation.Event{Kind: conversation.End, Output: o})
		}
		s.Write(nil, conversation.Event{Kind: conversation.Finish, Finish: choice.Finish})
	}
	s.closeAll(nil)
	return s.object.Append(nil, s.state(u))
}

// state returns the final state of the answer.
func (s *writer) state(u wire.Usage) State {
	state := State{Status: "completed", Usage: &u}
	if s.reason != "" {
		state.Status, state.Reason = "incomplete", s.reason
	}
	for i, item := range s.items {
		if i > 0 {
			state.Output = append(state.Output, ',')
		}
		state.Output = append(state.Output, item.json...)
	}
	return state
}

// event appends the start of an event with the next number.
func (s *writer) event(dst []byte, kind string) []byte {
	s.next++
	return BeginEvent(dst, kind, s.next-1)
}

// begin appends the first two events, once.
func (s *writer) begin(dst []byte) []byte {
	if s.started {
		return dst
	}
	s.started = true
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		dst = append(s.event(dst, kind), `,"response":`...)
		dst = endEvent(s.object.Append(dst, State{Status: "in_progress"}))
	}
	return dst
}

// setReason sets the first incomplete reason.
func (s *writer) setReason(reason string) {
	if s.reason == "" {
		s.reason = reason
	}
}

// reserve takes n bytes from the room for text. It returns false, and sets the incomplete reason, if the
// answer is too large.
func (s *writer) reserve(n int) bool {
	if n > s.room || len(s.items) > maxOutputItems || len(s.calls) > maxOutputItems {
		s.room = 0
		s.setReason(reasonLimit)
		return false
	}
	s.room -= n
	return true
}

// text appends text or a refusal, the contents of a JSON string. Logprobs may come without text, after the
// text they belong to.
func (s *writer) text(dst, text []byte, refusal bool, logprobs []byte) []byte {
	var probs []byte
	if !refusal && len(logprobs) > 2 && logprobs[0] == '[' && rawjson.IsValid(logprobs) {
		probs = conversation.AppendLogprobs(nil, logprobs, appendBytes)
	}
	if len(text) == 0 && (len(probs) == 0 || !s.inText()) || !s.reserve(len(text)+len(probs)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindMessage {
		dst = s.openItem(s.begin(dst), &outputItem{kind: kindMessage})
	}
	item := s.open
	if item.current == nil || item.current.refusal != refusal {
		dst = s.openPart(s.closePart(dst), item, refusal)
	}
	item.current.text = append(item.current.text, text...)
	if len(probs) > 0 {
		if len(item.current.logprobs) > 0 {
			item.current.logprobs = append(item.current.logprobs, ',')
		}
		item.current.logprobs = append(item.current.logprobs, probs...)
	}
	if s.silent || len(text) == 0 { // such logprobs are in the final text event only
		return dst
	}
	if refusal {
		dst = append(s.event(dst, "response.refusal.delta"), item.location...)
		return endEvent(appendText(dst, `,"delta":"`, text))
	}
	dst = append(s.event(dst, "response.output_text.delta"), item.location...)
	dst = append(appendText(dst, `,"delta":"`, text), `,"logprobs":[`...)
	return endEvent(append(append(dst, probs...), ']'))
}

// inText reports whether a text is open.
func (s *writer) inText() bool {
	return s.open != nil && s.open.kind == kindMessage && s.open.current != nil && !s.open.current.refusal
}

// appendBytes appends the bytes of a token: the form requires them, but not every vendor reports
// them.
func appendBytes(dst, token []byte) []byte {
	dst = append(dst, '[')
	for i, b := range []byte(rawjson.Unquote(token)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(b), 10)
	}
	return append(dst, ']')
}

// reasoning appends reasoning, the contents of a JSON string.
func (s *writer) reasoning(dst, text []byte) []byte {
	if len(text) == 0 || !s.reserve(len(text)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindReasoning {
		dst = s.openItem(s.begin(dst), &outputItem{kind: kindReasoning})
		dst = s.openPart(dst, s.open, false)
	}
	s.open.current.text = append(s.open.current.text, text...)
	if s.silent {
		return dst
	}
	dst = append(s.event(dst, "response.reasoning_summary_text.delta"), s.open.location...)
	return endEvent(appendText(dst, `,"delta":"`, text))
}

// sealReasoning ends reasoning with its signature under a seal.
func (s *writer) sealReasoning(dst []byte, o *conversation.Output) []byte {
	if s.open == nil || s.open.kind != kindReasoning {
		dst = s.openItem(s.begin(dst), &outputItem{kind: kindReasoning})
	}
	s.open.sealed = conversation.Seal(s.id, o.Signature.Data)
	return s.closeOpen(dst, "completed")
}

// appendText appends a name with an opening quote, the contents of a JSON string, and the closing
// quote.
func appendText(dst []byte, name string, text []byte) []byte {
	return rawjson.Put(append(dst, name...), "", text, `"`)
}

// withoutSurrogates returns the contents of a JSON string without half a surrogate pair, because
// clients would replace it in a delta but not in the whole text.
func withoutSurrogates(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\ud`)) && !bytes.Contains(text, []byte(`\uD`)) {
		return text
	}
	return rawjson.Contents(rawjson.Quote(string(rawjson.AppendUnquoted(nil, text))))
}
