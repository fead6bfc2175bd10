package responseschat

import (
	"bytes"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
	"tollgate/internal/wire/translate/internal/piece"
)

// stream turns the frames of a chat-completions stream into the
// events of a responses stream: items open and close in order, every text is
// repeated whole when it ends, and the last event carries the whole response.
// Vendors' deviations are tolerated. Not for concurrent use.
type stream struct {
	object responses.Object
	id     wire.Identity
	stem   string
	tools  *chatTools
	silent bool // no events are wanted, only the items

	next  int64 // sequence number
	begun bool
	ended bool
	held  *beginning // what came before the bytes that wait for the settlement

	items []*outputItem
	open  *outputItem   // the message or reasoning that grows
	calls []*outputItem // all calls, also those that are not among the items yet
	ids   map[string]bool

	room   int    // bytes of text that may still come
	reason string // why the answer is incomplete
}

const (
	// maxOutputText bounds the text of an answer that is kept, since it is
	// repeated at its end. An answer that reaches it is cut there, as if by a
	// limit of tokens.
	maxOutputText = 64 << 20
	// maxOutputItems bounds the items of an answer in the same way.
	maxOutputItems = 4 << 10
)

// Reasons for which an answer is incomplete.
const (
	reasonLimit  = "max_output_tokens"
	reasonFilter = "content_filter"
	reasonServer = "server_error"
)

// newStream makes the translator of the stream that answers r.
func newStream(id wire.Identity, r *responses.Request) *stream {
	tools, _ := chatToolsOf(r.Doc) // what it refuses never got an answer
	return &stream{
		object: responses.NewObject(id, r), id: id, stem: stem(id), tools: tools,
		ids: make(map[string]bool), room: maxOutputText,
	}
}

// wholeAnswer turns a chat completion that was not streamed into a
// response; ErrMalformed when it is no JSON object.
func wholeAnswer(body []byte, id wire.Identity, u wire.Usage, r *responses.Request) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	s := newStream(id, r)
	s.silent, s.begun = true, true
	s.readFrame(nil, object)
	s.closeAll(nil)
	return s.object.Append(nil, s.state(u)), nil
}

// beginning is how far a stream has come. From its finish on, bytes wait for
// the settlement; when they are thrown away, the stream fails where it was.
type beginning struct {
	next  int64
	begun bool
}

// Append appends the events that a frame means.
func (s *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	if f.Finished && s.held == nil {
		s.held = &beginning{s.next, s.begun}
	}
	switch {
	case s.ended || f.Done || f.Err != nil:
		return dst
	case e.Data == nil && s.begun:
		return append(dst, sse.KeepAlive...)
	case len(data) == 0 || data[0] != '{':
		return dst
	}
	return s.readFrame(s.begin(dst), data)
}

// End appends what completes the stream: the ends of what is open, and the
// response with the usage that was charged.
func (s *stream) End(dst []byte, u wire.Usage) []byte {
	if s.ended {
		return dst
	}
	dst = s.closeAll(s.begin(dst))
	state := s.state(u)
	dst = append(s.event(dst, "response."+state.Status), `,"response":`...)
	s.ended = true
	return endOf(s.object.Append(dst, state))
}

// Fail appends the event that ends a stream which broke off. What was written
// since the finish, the end among it, did not go out.
func (s *stream) Fail(dst []byte, err *fault.Error) []byte {
	if s.held != nil {
		s.next, s.begun = s.held.next, s.held.begun
	}
	dst = s.begin(dst)
	s.ended = true
	return s.object.AppendFailed(dst, s.next, err)
}

// state is the answer's end.
func (s *stream) state(u wire.Usage) responses.State {
	state := responses.State{Status: "completed", Usage: &u}
	if s.reason != "" {
		state.Status, state.Reason = "incomplete", s.reason
	}
	for i, item := range s.items {
		if i > 0 {
			state.Output = append(state.Output, ',')
		}
		state.Output = append(state.Output, item.done...)
	}
	return state
}

// event begins an event with the next number.
func (s *stream) event(dst []byte, kind string) []byte {
	s.next++
	return responses.BeginEvent(dst, kind, s.next-1)
}

// begin appends the first two events, once.
func (s *stream) begin(dst []byte) []byte {
	if s.begun {
		return dst
	}
	s.begun = true
	for _, kind := range [...]string{"response.created", "response.in_progress"} {
		dst = append(s.event(dst, kind), `,"response":`...)
		dst = endOf(s.object.Append(dst, responses.State{Status: "in_progress"}))
	}
	return dst
}

// readFrame reads the only choice of a frame or of a whole answer.
func (s *stream) readFrame(dst, data []byte) []byte {
	for i, choice := range rawjson.Elements(rawjson.Field(data, "choices")) {
		var message, logprobs []byte
		index, reason := int64(i), ""
		for name, value := range rawjson.Members(choice) {
			switch string(name) {
			case "index":
				if n, ok := rawjson.Count(value); ok {
					index = n
				}
			case "delta", "message":
				if message == nil {
					message = rawjson.NonNull(value)
				}
			case "logprobs":
				logprobs = rawjson.Field(value, "content")
			case "finish_reason":
				reason = rawjson.Unquote(value)
			}
		}
		if index != 0 {
			continue
		}
		dst = s.readMessage(dst, message, logprobs)
		switch form.KindOfFinish(reason) {
		case form.FinishLimit:
			s.stop(reasonLimit)
		case form.FinishFiltered:
			s.stop(reasonFilter)
		case form.FinishFailed:
			s.stop(reasonServer)
		}
	}
	return dst
}

// stop notes why the answer is incomplete; the first reason stays.
func (s *stream) stop(reason string) {
	if s.reason == "" {
		s.reason = reason
	}
}

// readMessage reads a message or a delta of one.
func (s *stream) readMessage(dst, message, logprobs []byte) []byte {
	var content, refusal, calls, call []byte
	thought := false // the same reasoning may stand in two fields
	for name, value := range rawjson.Members(message) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "content":
			content = value
		case "refusal":
			refusal = value
		case "tool_calls":
			calls = value
		case "function_call":
			call = value
		default:
			if !thought && form.IsThought(name) {
				for text := range texts(value, 0) {
					dst, thought = s.reasoning(dst, text), true
				}
			}
		}
	}
	switch {
	case rawjson.IsText(content):
		dst = s.text(dst, textInside(content), false, logprobs)
	default:
		for _, part := range rawjson.Elements(content) {
			isThinking := form.IsThought(rawjson.Field(part, "type"))
			for text := range texts(part, 0) {
				if isThinking {
					dst = s.reasoning(dst, text)
				} else {
					dst = s.text(dst, text, false, nil)
				}
			}
		}
	}
	if rawjson.IsText(refusal) {
		dst = s.text(dst, textInside(refusal), true, nil)
	}
	for position, call := range rawjson.Elements(calls) {
		dst = s.call(dst, call, int64(position))
	}
	if call != nil && call[0] == '{' {
		dst = s.callOf(dst, oldCall, nil, call, nil)
	}
	return dst
}

// take tells whether n more bytes of text may be kept.
func (s *stream) take(n int) bool {
	if n > s.room || len(s.items) > maxOutputItems || len(s.calls) > maxOutputItems {
		s.room = 0
		s.stop(reasonLimit)
		return false
	}
	s.room -= n
	return true
}

// text appends text or a refusal: the inside of a JSON string. Logprobs may come
// without text, behind the text that they are of.
func (s *stream) text(dst, text []byte, refusal bool, logprobs []byte) []byte {
	var probs []byte
	if !refusal && len(logprobs) > 2 && logprobs[0] == '[' && rawjson.IsValid(logprobs) {
		probs = piece.AppendLogprobs(nil, logprobs, appendBytes)
	}
	if len(text) == 0 && (len(probs) == 0 || !s.says()) || !s.take(len(text)+len(probs)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindMessage {
		dst = s.openItem(dst, &outputItem{kind: kindMessage})
	}
	item := s.open
	if item.part == nil || item.part.refusal != refusal {
		dst = s.openPart(s.closePart(dst), item, refusal)
	}
	item.part.text = append(item.part.text, text...)
	if len(probs) > 0 {
		if len(item.part.logprobs) > 0 {
			item.part.logprobs = append(item.part.logprobs, ',')
		}
		item.part.logprobs = append(item.part.logprobs, probs...)
	}
	if s.silent || len(text) == 0 { // the end of the text tells the latter
		return dst
	}
	if refusal {
		dst = append(s.event(dst, "response.refusal.delta"), item.place...)
		return endOf(appendText(dst, `,"delta":"`, text))
	}
	dst = append(s.event(dst, "response.output_text.delta"), item.place...)
	dst = append(appendText(dst, `,"delta":"`, text), `,"logprobs":[`...)
	return endOf(append(append(dst, probs...), ']'))
}

// says tells whether a text is being said that more may be told of.
func (s *stream) says() bool {
	return s.open != nil && s.open.kind == kindMessage && s.open.part != nil && !s.open.part.refusal
}

// appendBytes appends the bytes of a token: the form demands them, and not every
// vendor tells them.
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

// reasoning appends reasoning: the inside of a JSON string.
func (s *stream) reasoning(dst, text []byte) []byte {
	if len(text) == 0 || !s.take(len(text)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindReasoning {
		dst = s.openItem(dst, &outputItem{kind: kindReasoning})
		dst = s.openPart(dst, s.open, false)
	}
	s.open.part.text = append(s.open.part.text, text...)
	if s.silent {
		return dst
	}
	dst = append(s.event(dst, "response.reasoning_summary_text.delta"), s.open.place...)
	return endOf(appendText(dst, `,"delta":"`, text))
}

// appendText writes a name with an opening quote behind it, the inside of a
// JSON string, and the closing quote.
func appendText(dst []byte, name string, text []byte) []byte {
	return rawjson.Put(append(dst, name...), "", text, `"`)
}

// textInside returns the inside of a JSON string that can be written as it is.
// Of frames that are checked by their brackets alone it need not be valid; and
// half a character, which clients would replace in a delta but not in the
// whole text, is replaced here.
func textInside(value []byte) []byte {
	if rawjson.IsString(value) && !hasSurrogate(value) {
		return value[1 : len(value)-1]
	}
	clean := rawjson.Quote(string(rawjson.AppendUnquoted(nil, bytes.Trim(value, `"`))))
	return clean[1 : len(clean)-1]
}

// hasSurrogate tells whether a text may have escapes of halves of characters.
func hasSurrogate(value []byte) bool {
	return bytes.Contains(value, []byte(`\ud`)) || bytes.Contains(value, []byte(`\uD`))
}

// texts walks the texts in a value in which vendors send reasoning or parts of
// content: a string, an object with one, or an array of such.
func texts(value []byte, depth int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) { eachText(value, depth, yield) }
}

func eachText(value []byte, depth int, yield func([]byte) bool) bool {
	const deepest = 4 // deeper than any vendor's parts
	switch {
	case len(value) == 0 || depth > deepest:
	case rawjson.IsText(value):
		return yield(textInside(value))
	case value[0] == '[':
		for _, element := range rawjson.Elements(value) {
			if !eachText(element, depth+1, yield) {
				return false
			}
		}
	case value[0] == '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "text", "summary", "thinking", "reasoning", "content":
				if !eachText(member, depth+1, yield) {
					return false
				}
			}
		}
	}
	return true
}

// endOf ends an event.
func endOf(dst []byte) []byte { return append(dst, "}\n\n"...) }

// stem is what all ids of an answer have in common.
func stem(id wire.Identity) string { return strings.TrimPrefix(id.Request, "req_") }
