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
			// The same reasoning may be in two fields; plain text is preferred. A field with a signature is
			// skipped.
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
	position := int64(0)
	for from, to := range rawjson.ElementSpans(calls) {
		together := position > 0 || calls[rawjson.SkipSpace(calls, to)] == ','
		r.call(calls[from:to], delta{key: position, together: together})
		position++
	}
	if function != nil {
		r.function(function, delta{key: functionKey})
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

// addText reads a text or reasoning, a JSON string. Logprobs may come without text, after the text they
// belong to.
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
		r.flush(false)
		r.text = &r.first
		if r.texts++; r.texts > 1 {
			r.text = new(conversation.Output)
		}
		r.text.Kind = kind
		r.Start(r.text, nil)
	}
	r.Text(r.text, text, logprobs)
}

// flush ends the open text and the calls with whole arguments, before a new text or the end of the answer. It
// first starts the calls that wait for an earlier call. If atEnd is set, it also starts calls without a name.
func (r *reader) flush(atEnd bool) {
	for _, c := range r.calls {
		if !c.started && (atEnd || c.output.Name != nil) {
			r.endCalls(true)
			r.startCall(c)
		}
	}
	r.endText()
	r.endCalls(true)
}

func (r *reader) endText() {
	if r.text != nil {
		r.Emitter.End(r.text)
		r.text = nil
	}
}

// endCalls ends the calls with whole arguments. A call with only a placeholder ends only if placeholders is
// set.
func (r *reader) endCalls(placeholders bool) {
	for _, c := range r.calls {
		if c.started && !c.ended && c.arguments.isWhole() && (placeholders || !c.hasPlaceholder()) {
			r.endCall(c)
		}
	}
}

func (r *reader) endCall(c *call) {
	c.ended = true
	c.output.Complete = c.arguments.isWhole()
	r.Emitter.End(c.output)
}

// call reads a call, or a delta of one: its start, or a piece of its arguments.
func (r *reader) call(object []byte, d delta) {
	var function, extra []byte
	for name, value := range rawjson.Members(object) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				d.key, d.hasIndex = n, true
			}
		case "id":
			d.rawID = value
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
	if raw := rawjson.Field(rawjson.Field(extra, "google"), "thought_signature"); len(rawjson.Contents(raw)) > 0 {
		d.signature = conversation.LineSignature(raw, wire.FormGemini)
	}
	r.function(function, d)
}

// function reads the name of a call, and a piece of its arguments.
func (r *reader) function(function []byte, d delta) {
	var arguments []byte
	for member, value := range rawjson.Members(function) {
		switch string(member) {
		case "name":
			if rawjson.IsText(value) && len(value) > 2 {
				d.name = conversation.Contents(value)
			}
		case "arguments", "input":
			arguments = rawjson.NonNull(value)
		}
	}
	switch {
	case string(arguments) == `""`:
		arguments = nil
	case rawjson.IsText(arguments):
		arguments = conversation.Contents(arguments)
	case arguments != nil: // an object instead of a string with JSON
		arguments = conversation.AppendEscaped(nil, arguments)
	}
	d.id, d.arguments = rawjson.Unquote(d.rawID), arguments
	switch c, err := d.find(r.calls); {
	case err != nil:
		r.Fail(err)
	case c != nil:
		r.grow(c, d)
	case len(r.calls) >= maxCalls:
		r.Fail(conversation.ErrTooLarge)
	default:
		c = &call{key: d.key, output: &conversation.Output{Kind: conversation.ToolCall}}
		if !d.hasIndex && d.key >= 0 {
			c.key = int64(len(r.calls))
		}
		r.calls = append(r.calls, c)
		r.grow(c, d)
		c.placeholder = c.arguments.isWhole()
	}
	r.startCalls()
}

// grow adds a delta to its call.
func (r *reader) grow(c *call, d delta) {
	if c.output.Name == nil && d.name != nil {
		c.output.Name = slices.Clone(d.name)
	}
	if c.id == "" && d.id != "" && !c.started {
		c.id, c.output.ID = d.id, slices.Clone(conversation.Contents(d.rawID))
	}
	if d.signature.Data != nil && !c.started {
		c.output.Signature = d.signature
	}
	switch {
	case c.ended && c.arguments.state() == bare && !conversation.IsBlank(d.arguments):
		r.Fail(errLate)
		return
	case c.ended:
		return
	}
	c.arguments.add(d.arguments)
	if c.started {
		r.Text(c.output, d.arguments, nil)
	} else {
		c.waiting = append(c.waiting, d.arguments...)
		if r.held += len(d.arguments); r.held > maxHeld {
			r.Fail(conversation.ErrTooLarge)
		}
	}
	if c.started && c.arguments.isWhole() && !c.hasPlaceholder() && !r.isLast(c) {
		r.endCall(c)
	}
}

// isLast reports whether no part started after a call.
func (r *reader) isLast(c *call) bool { return r.text == nil && r.calls[len(r.calls)-1] == c }

// startCalls starts the calls with a name, up to the first call with a placeholder, because its arguments may
// follow.
func (r *reader) startCalls() {
	for _, c := range r.calls {
		if !c.started && c.output.Name != nil {
			r.startCall(c)
		}
		if c.started && !c.ended && c.hasPlaceholder() {
			return
		}
	}
}

func (r *reader) startCall(c *call) {
	r.endText()
	r.endCalls(false)
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

// finish ends all parts.
func (r *reader) finish(kind form.FinishKind) {
	r.finished = true
	r.flush(true)
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
