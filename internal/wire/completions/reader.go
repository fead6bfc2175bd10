package completions

import (
	"bytes"
	"slices"

	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// reader reads an answer as events. Only its first choice counts, and the calls of a message may
// interleave.
type reader struct {
	*conversation.Emitter
	begun     bool
	hasChoice bool
	choice    int64
	text      *conversation.Output // the open text, refusal or reasoning
	first     conversation.Output  // memory of the first text
	texts     int
	calls     []*call // in the order of arrival
	held      int     // bytes of arguments of calls without a name yet
	finished  bool
}

// call is a tool call. Its arguments wait for its name.
type call struct {
	output    *conversation.Output
	key       int64
	id        string // the provider's, may be empty
	arguments argumentScanner
	waiting   []byte
	started   bool
	ended     bool
}

const (
	// maxCalls bounds the calls of one answer, and maxHeld the arguments of calls without a name, far
	// above the largest real answers.
	maxCalls = 1024
	maxHeld  = 8 << 20
	// functionKey is the key of a call in the deprecated member function_call, which has no index.
	functionKey = -1
)

// NewReader returns the reader of a line's answer.
func NewReader(m *conversation.Emitter) conversation.Reader { return &reader{Emitter: m} }

// Read implements conversation.Reader. The answer ends with the finish_reason.
func (r *reader) Read(_ string, object []byte) {
	if r.finished {
		return
	}
	if !r.begun {
		r.begun = true
		r.Emit(conversation.Event{Kind: conversation.Begin})
	}
	for position, choice := range rawjson.Elements(rawjson.Field(object, "choices")) {
		r.readChoice(choice, int64(position))
	}
}

// Whole implements conversation.Reader.
func (r *reader) Whole(object []byte) { r.Read("", object) }

func (r *reader) readChoice(choice []byte, index int64) {
	var messages [2][]byte
	var reason, logprobs []byte
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				index = n
			}
		case "delta":
			messages[0] = rawjson.NonNull(value)
		case "message":
			messages[1] = rawjson.NonNull(value)
		case "logprobs":
			logprobs = rawjson.Field(value, "content")
		case "finish_reason":
			reason = value
		}
	}
	if !r.hasChoice {
		r.hasChoice, r.choice = true, index
	}
	if index != r.choice || r.finished {
		return
	}
	for _, message := range messages {
		if message != nil {
			r.message(message, logprobs)
		}
	}
	if len(reason) > 2 {
		if kind := form.FinishOf(rawjson.Unquote(reason)); kind != form.FinishNone && kind != form.FinishFailed {
			r.finish(kind)
		}
	}
}

// message reads a message or a delta.
func (r *reader) message(message, logprobs []byte) {
	var reasoning, content, refusal, calls, function []byte
	for name, value := range rawjson.Members(message) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "role", "name", "id", "type", "index":
		case "content":
			content = value
		case "refusal":
			refusal = value
		case "tool_calls":
			calls = value
		case "function_call":
			function = value
		default:
			// The same reasoning may be in two fields; plain text is preferred. Its signature is not part
			// of it.
			signs := bytes.HasSuffix(name, []byte("signature"))
			better := reasoning == nil || !rawjson.IsText(reasoning) && rawjson.IsText(value)
			if form.IsThought(name) && !signs && len(value) > 2 && better {
				reasoning = value
			}
		}
	}
	r.reasoning(reasoning, 0)
	r.content(content, logprobs)
	r.addText(conversation.Refusal, refusal, nil)
	for position, call := range rawjson.Elements(calls) {
		r.call(call, int64(position))
	}
	if function != nil {
		r.function(function, functionKey, false, nil, conversation.Signature{})
	}
}

// reasoning reads the texts of a reasoning field: a string, or a vendor's details.
func (r *reader) reasoning(value []byte, depth int) {
	const deepest = 8 // deeper than any vendor's details
	switch {
	case len(value) == 0 || depth > deepest:
	case rawjson.IsText(value):
		r.addText(conversation.Thinking, value, nil)
	case value[0] == '[':
		for _, element := range rawjson.Elements(value) {
			r.reasoning(element, depth+1)
		}
	case value[0] == '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "text", "summary", "thinking", "content", "reasoning":
				r.reasoning(member, depth+1)
			}
		}
	}
}

// content reads a content field: a string, or parts, possibly with thinking.
func (r *reader) content(value, logprobs []byte) {
	if len(value) == 0 || value[0] != '[' {
		if rawjson.IsText(value) || logprobs != nil {
			r.addText(conversation.Text, value, logprobs)
		}
		return
	}
	for _, part := range rawjson.Elements(value) {
		switch kind := rawjson.Contents(rawjson.Field(part, "type")); {
		case form.IsThought(kind):
			r.reasoning(part, 0)
		case string(kind) == "refusal":
			r.addText(conversation.Text, rawjson.Field(part, "refusal"), nil)
		default:
			r.addText(conversation.Text, rawjson.Field(part, "text"), nil)
		}
	}
}

// addText reads a text or reasoning, a JSON string. Logprobs may come without text, after theirs.
func (r *reader) addText(kind conversation.PartKind, raw, logprobs []byte) {
	var text []byte
	if rawjson.IsText(raw) {
		text = conversation.Contents(raw)
	}
	isOpen := r.text != nil && r.text.Kind == kind
	if len(text) == 0 && (!isOpen || logprobs == nil) {
		return
	}
	if !isOpen {
		r.next()
		r.text = &r.first
		if r.texts++; r.texts > 1 {
			r.text = new(conversation.Output)
		}
		r.text.Kind = kind
		r.Start(r.text, nil)
	}
	r.Text(r.text, text, logprobs)
}

// next ends the open text and the complete calls, before another part starts.
func (r *reader) next() {
	if r.text != nil {
		r.Emitter.End(r.text)
		r.text = nil
	}
	for _, c := range r.calls {
		if c.started && !c.ended && c.arguments.complete() {
			r.endCall(c)
		}
	}
}

func (r *reader) endCall(c *call) {
	c.ended = true
	c.output.Complete = c.arguments.complete()
	r.Emitter.End(c.output)
}

// call reads a call, or a delta of one: its start, or a piece of its arguments.
func (r *reader) call(object []byte, position int64) {
	key, hasIndex := position, false
	var id, function, extra []byte
	for name, value := range rawjson.Members(object) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				key, hasIndex = n, true
			}
		case "id":
			id = value
		case "function":
			function = rawjson.NonNull(value)
		case "custom":
			if function == nil {
				function = rawjson.NonNull(value)
			}
		case "extra_content":
			extra = value
		}
	}
	var signature conversation.Signature
	if raw := rawjson.Field(rawjson.Field(extra, "google"), "thought_signature"); len(rawjson.Contents(raw)) > 0 {
		signature = conversation.Signature{Data: slices.Clone(conversation.Contents(raw)), Vendor: wire.FormGemini}
	}
	r.function(function, key, hasIndex, id, signature)
}

// function reads the name of a call, and a piece of its arguments.
func (r *reader) function(function []byte, key int64, hasIndex bool, rawID []byte, signature conversation.Signature) {
	var name, arguments []byte
	for member, value := range rawjson.Members(function) {
		switch string(member) {
		case "name":
			if rawjson.IsText(value) && len(value) > 2 {
				name = value
			}
		case "arguments", "input":
			arguments = rawjson.NonNull(value)
		}
	}
	id := rawjson.Unquote(rawID)
	c := r.find(key, id, name != nil, hasIndex)
	if c == nil {
		if len(r.calls) >= maxCalls {
			r.Emit(conversation.Event{Kind: conversation.TooLarge})
			return
		}
		c = &call{key: key, output: &conversation.Output{Kind: conversation.ToolCall}}
		r.calls = append(r.calls, c)
	}
	if c.output.Name == nil && name != nil {
		c.output.Name = slices.Clone(conversation.Contents(name))
	}
	if c.id == "" && id != "" && !c.started {
		c.id, c.output.ID = id, slices.Clone(conversation.Contents(rawID))
	}
	if signature.Data != nil && !c.started {
		c.output.Signature = signature
	}
	switch {
	case c.ended || string(arguments) == `""`:
		arguments = nil
	case rawjson.IsText(arguments):
		arguments = conversation.Contents(arguments)
	case arguments != nil: // an object instead of a string with JSON
		arguments = conversation.AppendEscaped(nil, arguments)
	}
	c.arguments.add(arguments)
	switch {
	case c.started:
		r.Text(c.output, arguments, nil)
	default:
		c.waiting = append(c.waiting, arguments...)
		if r.held += len(arguments); r.held > maxHeld {
			r.Emit(conversation.Event{Kind: conversation.TooLarge})
		}
		if c.output.Name == nil {
			return
		}
		r.startCall(c)
	}
	if !c.ended && c.arguments.complete() && !r.isLast(c) {
		r.endCall(c)
	}
}

// isLast reports whether no part started after a call.
func (r *reader) isLast(c *call) bool { return r.text == nil && r.calls[len(r.calls)-1] == c }

// startCall starts a call, once.
func (r *reader) startCall(c *call) {
	if c.started {
		return
	}
	r.next()
	c.started = true
	c.output.Number = r.started()
	r.Start(c.output, nil)
	r.Text(c.output, c.waiting, nil)
	r.held -= len(c.waiting)
	c.waiting = nil
}

// started returns the number of calls started before the last one.
func (r *reader) started() int {
	n := -1
	for _, c := range r.calls {
		if c.started {
			n++
		}
	}
	return n
}

// find returns the call of a delta, or nil if the delta starts one. Some vendors number every call
// 0, and some send no index.
func (r *reader) find(key int64, id string, hasName, hasIndex bool) *call {
	var last *call
	for i := len(r.calls) - 1; i >= 0; i-- {
		c := r.calls[i]
		if id != "" && c.id == id && (!hasIndex || c.key == key) {
			return c
		}
		if last == nil && c.key == key {
			last = c
		}
	}
	if n := len(r.calls); n > 0 && !hasIndex && key >= 0 && !hasName && id == "" && (last == nil || last.arguments.complete()) {
		last = r.calls[n-1] // the arguments of the newest call continue
	}
	switch {
	case last == nil || !hasName || last.output.Name == nil || id == last.id && id != "":
		return last
	case id == "" && hasIndex, id != "" && last.id == "" && !last.arguments.complete():
		return last
	case id == "" && !last.arguments.complete():
		return last
	}
	return nil
}

// finish ends all parts.
func (r *reader) finish(kind form.FinishKind) {
	r.finished = true
	for _, c := range r.calls {
		r.startCall(c) // a call even without a name
	}
	r.next()
	for _, c := range r.calls {
		if !c.ended {
			r.endCall(c)
		}
	}
	r.Finish(0, kind)
}

// End implements conversation.Reader.
func (r *reader) End() {
	if !r.finished {
		r.finish(form.FinishStop)
	}
}

// argumentScanner reads a call's arguments piece by piece to find their end.
type argumentScanner struct {
	depth   int
	started bool
	quoted  bool // inside a string
	escaped bool // after a backslash in a string
	scratch []byte
}

// add adds a piece, the contents of a JSON string.
func (a *argumentScanner) add(raw []byte) {
	text := raw
	if bytes.IndexByte(raw, '\\') >= 0 {
		a.scratch = rawjson.AppendUnquoted(a.scratch[:0], raw)
		text = a.scratch
	}
	for _, c := range text {
		switch {
		case a.escaped:
			a.escaped = false
		case a.quoted:
			a.escaped = c == '\\'
			a.quoted = c != '"'
		case c == '"':
			a.quoted = true
		case c == '{' || c == '[':
			a.depth++
			a.started = true
		case c == '}' || c == ']':
			a.depth--
		}
	}
}

// complete reports whether an object has started and ended.
func (a *argumentScanner) complete() bool { return a.started && a.depth <= 0 && !a.quoted }
