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

// stream translates a stream of chat completions into one of responses: items open and close in
// order, every text is repeated as a whole when it ends, and the last event has the whole response.
// It tolerates vendors' deviations. It is not safe for concurrent use.
type stream struct {
	object   responses.Object
	id       wire.Identity
	idSuffix string
	tools    *chatTools
	silent   bool // collect the items without writing events

	next         int64 // sequence number
	started      bool
	ended        bool
	beforeFinish *position // set at the finish, since the bytes after it wait for the settlement

	items []*outputItem
	open  *outputItem   // the open message or reasoning
	calls []*outputItem // all calls, including those not yet among the items
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
	reasonServer = "server_error"
)

// newStream returns the writer of the answer to r.
func newStream(id wire.Identity, r *responses.Request) *stream {
	tools, _ := chatToolsOf(r.Doc) // a request with an error got no answer
	return &stream{
		object: responses.NewObject(id, r), id: id, idSuffix: idSuffixOf(id), tools: tools,
		ids: make(map[string]bool), room: maxOutputText,
	}
}

// wholeAnswer translates a chat completion into a response. It returns ErrMalformed if body is not
// a JSON object.
func wholeAnswer(body []byte, id wire.Identity, u wire.Usage, r *responses.Request) ([]byte, error) {
	object := rawjson.Object(body)
	if object == nil {
		return nil, wire.ErrMalformed
	}
	s := newStream(id, r)
	s.silent, s.started = true, true
	s.readFrame(nil, object)
	s.closeAll(nil)
	return s.object.Append(nil, s.state(u)), nil
}

// position is the progress of a stream at its finish. If the settlement fails, the bytes after it
// are dropped, and the error event continues from there.
type position struct {
	next    int64
	started bool
}

func (s *stream) Append(dst []byte, e sse.Event, f wire.Frame) []byte {
	data := bytes.TrimSpace(e.Data)
	if f.Finished && s.beforeFinish == nil {
		s.beforeFinish = &position{s.next, s.started}
	}
	switch {
	case s.ended || f.Done || f.Err != nil:
		return dst
	case e.Data == nil && s.started:
		return append(dst, sse.KeepAlive...)
	case len(data) == 0 || data[0] != '{':
		return dst
	}
	return s.readFrame(s.begin(dst), data)
}

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

// Fail implements wire.Writer. Bytes written since the finish were not sent.
func (s *stream) Fail(dst []byte, err *fault.Error) []byte {
	if s.beforeFinish != nil {
		s.next, s.started = s.beforeFinish.next, s.beforeFinish.started
	}
	dst = s.begin(dst)
	s.ended = true
	return s.object.AppendFailed(dst, s.next, err)
}

// state returns the final state of the answer.
func (s *stream) state(u wire.Usage) responses.State {
	state := responses.State{Status: "completed", Usage: &u}
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
func (s *stream) event(dst []byte, kind string) []byte {
	s.next++
	return responses.BeginEvent(dst, kind, s.next-1)
}

// begin appends the first two events, once.
func (s *stream) begin(dst []byte) []byte {
	if s.started {
		return dst
	}
	s.started = true
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
		switch form.FinishOf(reason) {
		case form.FinishLimit:
			s.setReason(reasonLimit)
		case form.FinishFiltered:
			s.setReason(reasonFilter)
		case form.FinishFailed:
			s.setReason(reasonServer)
		}
	}
	return dst
}

// setReason sets the first incomplete reason.
func (s *stream) setReason(reason string) {
	if s.reason == "" {
		s.reason = reason
	}
}

// readMessage reads a message or a delta of one.
func (s *stream) readMessage(dst, message, logprobs []byte) []byte {
	var content, refusal, calls, call []byte
	thought := false // the same reasoning may be in two fields
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
		dst = s.text(dst, contentsOf(content), false, logprobs)
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
		dst = s.text(dst, contentsOf(refusal), true, nil)
	}
	for position, call := range rawjson.Elements(calls) {
		dst = s.call(dst, call, int64(position))
	}
	if call != nil && call[0] == '{' {
		dst = s.callOf(dst, functionCallNumber, nil, call, nil)
	}
	return dst
}

// reserve reports whether n more bytes of text may be kept.
func (s *stream) reserve(n int) bool {
	if n > s.room || len(s.items) > maxOutputItems || len(s.calls) > maxOutputItems {
		s.room = 0
		s.setReason(reasonLimit)
		return false
	}
	s.room -= n
	return true
}

// text appends text or a refusal, the contents of a JSON string. Logprobs may come without text,
// after theirs.
func (s *stream) text(dst, text []byte, refusal bool, logprobs []byte) []byte {
	var probs []byte
	if !refusal && len(logprobs) > 2 && logprobs[0] == '[' && rawjson.IsValid(logprobs) {
		probs = piece.AppendLogprobs(nil, logprobs, appendBytes)
	}
	if len(text) == 0 && (len(probs) == 0 || !s.inText()) || !s.reserve(len(text)+len(probs)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindMessage {
		dst = s.openItem(dst, &outputItem{kind: kindMessage})
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
		return endOf(appendText(dst, `,"delta":"`, text))
	}
	dst = append(s.event(dst, "response.output_text.delta"), item.location...)
	dst = append(appendText(dst, `,"delta":"`, text), `,"logprobs":[`...)
	return endOf(append(append(dst, probs...), ']'))
}

// inText reports whether a text is open.
func (s *stream) inText() bool {
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
func (s *stream) reasoning(dst, text []byte) []byte {
	if len(text) == 0 || !s.reserve(len(text)) {
		return dst
	}
	if s.open == nil || s.open.kind != kindReasoning {
		dst = s.openItem(dst, &outputItem{kind: kindReasoning})
		dst = s.openPart(dst, s.open, false)
	}
	s.open.current.text = append(s.open.current.text, text...)
	if s.silent {
		return dst
	}
	dst = append(s.event(dst, "response.reasoning_summary_text.delta"), s.open.location...)
	return endOf(appendText(dst, `,"delta":"`, text))
}

// appendText appends a name with an opening quote, the contents of a JSON string, and the closing
// quote.
func appendText(dst []byte, name string, text []byte) []byte {
	return rawjson.Put(append(dst, name...), "", text, `"`)
}

// contentsOf returns the contents of a JSON string, repaired if invalid: the meter may have checked
// only brackets. Half a surrogate pair is replaced, because clients would replace it in a delta but
// not in the whole text.
func contentsOf(value []byte) []byte {
	if rawjson.IsString(value) && !hasSurrogate(value) {
		return value[1 : len(value)-1]
	}
	clean := rawjson.Quote(string(rawjson.AppendUnquoted(nil, bytes.Trim(value, `"`))))
	return clean[1 : len(clean)-1]
}

// hasSurrogate reports whether a text may have escapes of surrogates.
func hasSurrogate(value []byte) bool {
	return bytes.Contains(value, []byte(`\ud`)) || bytes.Contains(value, []byte(`\uD`))
}

// texts yields the texts in a value with reasoning or parts of content: a string, an object with
// one, or an array of these.
func texts(value []byte, depth int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) { eachText(value, depth, yield) }
}

func eachText(value []byte, depth int, yield func([]byte) bool) bool {
	const deepest = 4 // deeper than any vendor's parts
	switch {
	case len(value) == 0 || depth > deepest:
	case rawjson.IsText(value):
		return yield(contentsOf(value))
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

// idSuffixOf returns the common suffix of all ids of an answer.
func idSuffixOf(id wire.Identity) string { return strings.TrimPrefix(id.Request, "req_") }
