package completions

import (
	"slices"
	"strconv"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/conversation"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// writer writes an answer of a line of another form. Its output is well formed: one identity in all
// chunks, calls numbered from 0, at most one finish_reason for each choice, and only usage and [DONE]
// after it.
type writer struct {
	id       wire.Identity
	line     wire.Form
	usage    bool // the client asked for usage
	logprobs bool // the client asked for logprobs
	json     bool // the answer must be JSON, so only its first message counts

	head    []byte // of every chunk, up to its choices
	tail    string // of a chunk, after its choices
	choices []writtenChoice
	first   [1]writtenChoice // memory for the usual single choice
	ended   bool
}

// writtenChoice is the state of a choice in the client's stream.
type writtenChoice struct {
	started, finished bool
	calls             int
	lastText          int // message of the last text, from 1
	lastThinking      int // message of the last reasoning, from 1
	seals             int
	hasArguments      []bool // by number of the call
}

// Writer returns the writer of the answer to a request from a line of another form.
func (r *Request) Writer(id wire.Identity, line wire.Form) conversation.Writer {
	w := &writer{id: id, line: line, usage: r.IncludeUsage, tail: "}\n\n"}
	if r.IncludeUsage {
		w.tail = ",\"usage\":null}\n\n"
	}
	if r.Doc != nil {
		kind := rawjson.Unquote(rawjson.Field(r.Doc.Raw("response_format"), "type"))
		w.json = kind == "json_object" || kind == "json_schema"
		w.logprobs = string(r.Doc.Raw("logprobs")) == "true"
	}
	w.choices = w.first[:0]
	w.head = w.appendHead(append(make([]byte, 0, 192), "data: "...), "chat.completion.chunk")
	return w
}

// appendHead appends the start of an object, up to its choices.
func (w *writer) appendHead(dst []byte, object string) []byte {
	dst = conversation.AppendEscaped(append(dst, `{"id":"chatcmpl-`...), []byte(conversation.IDSuffix(w.id)))
	dst = rawjson.Put(dst, `","object":"`, object, `","created":`)
	dst = strconv.AppendInt(dst, w.id.Created, 10)
	dst = conversation.AppendQuoted(append(dst, `,"model":`...), []byte(w.id.Model))
	return append(dst, `,"choices":`...)
}

// choice returns the state of a choice.
func (w *writer) choice(index int) *writtenChoice {
	for len(w.choices) <= index {
		w.choices = append(w.choices, writtenChoice{})
	}
	return &w.choices[index]
}

// Write implements conversation.Writer.
func (w *writer) Write(dst []byte, e conversation.Event) []byte {
	if e.Kind == conversation.Idle {
		return append(dst, sse.KeepAlive...)
	}
	if w.ended || e.Choice >= form.MaxChoices {
		return dst
	}
	c := w.choice(e.Choice)
	if c.finished {
		return dst
	}
	switch e.Kind {
	case conversation.Begin:
		return w.begin(dst, c)
	case conversation.Start:
		return w.start(dst, c, e)
	case conversation.Delta:
		return w.delta(dst, c, e)
	case conversation.End:
		return w.end(dst, c, e)
	case conversation.Finish:
		started := c.started
		if dst = w.open(dst, e.Choice, c); !started {
			dst = append(dst, `"content":""`...)
		}
		dst = append(dst, `},"finish_reason":"`...)
		c.finished = true
		return rawjson.Put(append(dst, finishReason(e.Finish, c.calls > 0)...), `"}]`, w.tail, "")
	}
	return dst
}

// begin writes the first chunk, once.
func (w *writer) begin(dst []byte, c *writtenChoice) []byte {
	if c.started {
		return dst
	}
	return w.close(append(w.open(dst, 0, c), `"content":""`...))
}

// open appends the start of a chunk, up to the members of its delta. The first has the role.
func (w *writer) open(dst []byte, index int, c *writtenChoice) []byte {
	dst = rawjson.Put(dst, "", w.head, `[{"index":`)
	dst = append(strconv.AppendInt(dst, int64(index), 10), `,"delta":{`...)
	if !c.started {
		c.started = true
		dst = append(dst, `"role":"assistant",`...)
	}
	return dst
}

// close appends the end of a chunk.
func (w *writer) close(dst []byte) []byte {
	return rawjson.Put(dst, `},"finish_reason":null}]`, w.tail, "")
}

// start writes the start of a call or an image; texts begin with their first delta.
func (w *writer) start(dst []byte, c *writtenChoice, e conversation.Event) []byte {
	o := e.Output
	switch o.Kind {
	case conversation.ToolCall:
		c.calls++
		c.hasArguments = append(c.hasArguments, len(e.Text) > 0)
		dst = append(w.open(dst, e.Choice, c), `"tool_calls":[{"index":`...)
		dst = strconv.AppendInt(dst, int64(o.Number), 10)
		return w.close(append(w.appendCall(append(dst, ','), o, e.Text), "}]"...))
	case conversation.Image:
		dst = append(w.open(dst, e.Choice, c), `"images":[{"index":`...)
		dst = strconv.AppendInt(dst, int64(o.Number), 10)
		return w.close(append(w.appendImage(append(dst, ','), o), "}]"...))
	}
	if len(e.Text) > 0 {
		return w.delta(dst, c, e)
	}
	return dst
}

// appendCall appends the members of a call.
func (w *writer) appendCall(dst []byte, o *conversation.Output, text []byte) []byte {
	id := o.ID
	if id == nil {
		id = []byte(conversation.NewCallID(w.id, o.Number))
	}
	kind, member := callKind(o)
	dst = rawjson.Put(dst, `"id":"`, id, `","type":"`)
	dst = rawjson.Put(dst, "", kind, `","`)
	dst = rawjson.Put(dst, "", kind, `":{"name":"`)
	dst = rawjson.Put(dst, "", o.Name, `","`)
	dst = rawjson.Put(dst, "", member, `":"`)
	return w.appendSignature(rawjson.Put(dst, "", text, `"}`), o)
}

// callKind returns the type of a call, and the name of its text.
func callKind(o *conversation.Output) (kind, member string) {
	if o.Custom {
		return "custom", "input"
	}
	return "function", "arguments"
}

// appendSignature appends the signature to the members of a call or an image, as in Google's own
// chat form. The model expects the signature back.
func (w *writer) appendSignature(dst []byte, o *conversation.Output) []byte {
	data := o.Signature.Data
	if len(data) == 0 {
		return dst
	}
	if w.id.Seals {
		data = conversation.Seal(w.id, data)
	}
	return rawjson.Put(dst, `,"extra_content":{"google":{"thought_signature":"`, data, `"}}`)
}

// appendImage appends the members of an image as a data URL, as other vendors do.
func (w *writer) appendImage(dst []byte, o *conversation.Output) []byte {
	dst = rawjson.Put(dst, `"type":"image_url","image_url":{"url":"data:`, o.Media, "")
	return w.appendSignature(rawjson.Put(dst, ";base64,", o.Data, `"}`), o)
}

// delta writes a piece of a text, of reasoning or of a call.
func (w *writer) delta(dst []byte, c *writtenChoice, e conversation.Event) []byte {
	o := e.Output
	switch o.Kind {
	case conversation.ToolCall:
		if o.Number < len(c.hasArguments) {
			c.hasArguments[o.Number] = true
		}
		return w.arguments(dst, c, o, e.Text)
	case conversation.Thinking:
		dst = append(w.open(dst, e.Choice, c), `"reasoning_content":"`...)
		return w.close(rawjson.Put(dst, gap(&c.lastThinking, o.Message), e.Text, `"`))
	case conversation.Refusal:
		return w.close(rawjson.Put(w.open(dst, e.Choice, c), `"refusal":"`, e.Text, `"`))
	case conversation.Image:
		return dst
	}
	if w.json && c.lastText > 0 && c.lastText != o.Message+1 {
		return dst
	}
	logprobs := w.logprobsOf(e.Logprobs)
	if len(e.Text) == 0 && logprobs == nil {
		return dst
	}
	dst = append(w.open(dst, e.Choice, c), `"content":"`...)
	dst = rawjson.Put(dst, gap(&c.lastText, o.Message), e.Text, `"`)
	if logprobs != nil {
		dst = rawjson.Put(dst, `},"logprobs":{"content":[`, logprobs, `],"refusal":null`)
	}
	return w.close(dst)
}

// paragraph separates texts of different messages.
const paragraph = `\n\n`

// gap returns the separator before a text of a message, given the message of the last one, from 1.
func gap(last *int, message int) string {
	before := *last
	*last = message + 1
	if before == 0 || before == *last {
		return ""
	}
	return paragraph
}

// logprobsOf returns logprobs without brackets, or nil. Tokens without bytes get null.
func (w *writer) logprobsOf(list []byte) []byte {
	if !w.logprobs || len(list) <= 2 || list[0] != '[' || !rawjson.IsValid(list) {
		return nil
	}
	return conversation.AppendLogprobs(nil, list, func(dst, _ []byte) []byte { return append(dst, "null"...) })
}

// arguments writes a piece of a call's arguments.
func (w *writer) arguments(dst []byte, c *writtenChoice, o *conversation.Output, text []byte) []byte {
	kind, member := callKind(o)
	dst = append(w.open(dst, o.Choice, c), `"tool_calls":[{"index":`...)
	dst = rawjson.Put(strconv.AppendInt(dst, int64(o.Number), 10), `,"`, kind, `":{"`)
	dst = rawjson.Put(dst, "", member, `":"`)
	return w.close(rawjson.Put(dst, "", text, `"}}]`))
}

// end ends a part. A call without arguments gets an empty object. Sealed reasoning follows its text.
func (w *writer) end(dst []byte, c *writtenChoice, e conversation.Event) []byte {
	switch o := e.Output; {
	case o.Kind == conversation.ToolCall && !o.Custom && o.Number < len(c.hasArguments) && !c.hasArguments[o.Number]:
		return w.arguments(dst, c, o, []byte("{}"))
	case o.Kind == conversation.Thinking:
		if detail := w.appendDetail(nil, c, o); detail != nil {
			return w.close(rawjson.Put(w.open(dst, e.Choice, c), `"reasoning_details":[`, detail, "]"))
		}
	}
	return dst
}

// sealFormats are the formats of sealed reasoning by the line's form, as OpenRouter names them.
var sealFormats = map[wire.Form]string{wire.FormResponses: "openai-responses-v1", wire.FormInteractions: "google-gemini-v1"}

// appendDetail appends the reasoning detail with sealed reasoning of a line.
func (w *writer) appendDetail(dst []byte, c *writtenChoice, o *conversation.Output) []byte {
	format := sealFormats[o.Signature.Vendor]
	if format == "" || len(o.Signature.Data) == 0 {
		return dst
	}
	dst = rawjson.Put(dst, `{"type":"reasoning.encrypted","data":"`, conversation.Seal(w.id, o.Signature.Data), `","format":"`)
	dst = rawjson.Put(dst, "", format, `","index":`)
	c.seals++
	return append(strconv.AppendInt(dst, int64(c.seals-1), 10), '}')
}

// finishReason returns the finish_reason of a choice with or without calls.
func finishReason(kind form.FinishKind, calls bool) string {
	switch {
	case kind == form.FinishLimit:
		return "length"
	case kind == form.FinishFiltered:
		return "content_filter"
	case calls:
		return "tool_calls"
	}
	return "stop"
}

// appendUsage appends the usage. The Gemini form reports no cache writes, so their count is left out for its
// lines.
func (w *writer) appendUsage(dst []byte, u wire.Usage) []byte {
	return appendUsage(dst, u, w.line != wire.FormGemini)
}

// End implements conversation.Writer. It appends nothing to an unfinished or ended stream.
func (w *writer) End(dst []byte, u wire.Usage) []byte {
	if w.ended || !slices.ContainsFunc(w.choices, func(c writtenChoice) bool { return c.finished }) {
		return dst
	}
	w.ended = true
	if w.usage {
		dst = append(append(dst, w.head...), `[],"usage":`...)
		dst = append(w.appendUsage(dst, u), "}\n\n"...)
	}
	return append(dst, sse.Done...)
}

// Fail implements conversation.Writer.
func (w *writer) Fail(dst []byte, err *fault.Error) []byte {
	w.ended = true
	return append(dst, ErrorEvent(err.Object())...)
}

// Whole implements conversation.Writer.
func (w *writer) Whole(a *conversation.Answer, u wire.Usage) []byte {
	out := append(w.appendHead(nil, "chat.completion"), '[')
	for i := range a.Choices {
		if i > 0 {
			out = append(out, ',')
		}
		out = w.appendChoice(out, i, &a.Choices[i])
	}
	return append(w.appendUsage(append(out, `],"usage":`...), u), '}')
}

// appendChoice appends a choice of a whole answer.
func (w *writer) appendChoice(dst []byte, index int, choice *conversation.OutputChoice) []byte {
	var text, refusal, thinking, details, calls, images, logprobs []byte
	c := &writtenChoice{}
	for _, o := range choice.Outputs {
		switch o.Kind {
		case conversation.Text:
			if w.json && c.lastText > 0 && c.lastText != o.Message+1 || len(o.Text) == 0 {
				text = append([]byte{}, text...)
				continue
			}
			text = append(append(text, gap(&c.lastText, o.Message)...), o.Text...)
			if len(o.Logprobs) > 0 {
				logprobs = append(append(logprobs, ','), w.logprobsOf(rawjson.Put(nil, "[", o.Logprobs, "]"))...)
			}
		case conversation.Refusal:
			refusal = append(refusal, o.Text...)
		case conversation.Thinking:
			if len(o.Text) > 0 {
				thinking = append(append(thinking, gap(&c.lastThinking, o.Message)...), o.Text...)
			}
			if detail := w.appendDetail(nil, c, o); detail != nil {
				details = append(append(details, ','), detail...)
			}
		case conversation.ToolCall:
			arguments := o.Text
			if !o.Custom {
				if len(arguments) == 0 {
					arguments = []byte("{}")
				}
				if choice.Finish == form.FinishLimit && !rawjson.IsValid(rawjson.AppendUnquoted(nil, arguments)) {
					continue // the call is cut off
				}
			}
			calls = append(w.appendCall(append(calls, ",{"...), o, arguments), '}')
		case conversation.Image:
			images = append(w.appendImage(append(images, ",{"...), o), '}')
		}
	}
	dst = strconv.AppendInt(append(dst, `{"index":`...), int64(index), 10)
	dst = append(dst, `,"message":{"role":"assistant","content":`...)
	dst = appendTextOr(dst, text, text == nil && (calls != nil || refusal != nil))
	dst = appendTextOr(append(dst, `,"refusal":`...), refusal, refusal == nil)
	if len(thinking) > 0 {
		dst = rawjson.Put(dst, `,"reasoning_content":"`, thinking, `"`)
	}
	for _, list := range []struct {
		name     string
		elements []byte
	}{{"reasoning_details", details}, {"tool_calls", calls}, {"images", images}} {
		if list.elements != nil {
			dst = rawjson.AppendMember(dst, list.name, conversation.List(list.elements))
		}
	}
	dst = append(dst, `},"logprobs":`...)
	if len(logprobs) > 1 {
		dst = rawjson.Put(dst, `{"content":`, conversation.List(logprobs), `,"refusal":null}`)
	} else {
		dst = append(dst, "null"...)
	}
	return rawjson.Put(dst, `,"finish_reason":"`, finishReason(choice.Finish, calls != nil), `"}`)
}

// appendTextOr appends a text, the contents of a JSON string, or null.
func appendTextOr(dst, text []byte, null bool) []byte {
	if null {
		return append(dst, "null"...)
	}
	return rawjson.Put(dst, `"`, text, `"`)
}
