package form

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// ReplaceMember replaces the value of a member of a JSON object. It returns pieces to be written
// one after the other, so that a long text is not copied.
func ReplaceMember(body []byte, name string, value []byte) [3][]byte {
	from := max(bytes.IndexByte(body, '{'), 0)
	for m := range rawjson.Spans(body[from:]) {
		if string(m.Name) == name {
			return [3][]byte{body[:from+m.From], value, body[from+m.To:]}
		}
	}
	return [3][]byte{body}
}

// WithMember returns a JSON object with another value of a member.
func WithMember(object []byte, name string, value []byte) []byte {
	pieces := ReplaceMember(object, name, value)
	return bytes.Join(pieces[:], nil)
}

// EstimatedTokens returns a rough token count for a text of size bytes.
func EstimatedTokens(size int64) int64 { return (size + bytesPerToken - 1) / bytesPerToken }

// maxBuffer is the number of bytes of an answer retained to count its tokens. The count of a longer
// answer is extrapolated.
const maxBuffer = 64 << 10

// Output collects the output of an answer: text to count tokens, and the kinds of content.
type Output struct {
	Buffer []byte // content, refusal, reasoning and tool calls, without escapes
	Bytes  int64  // size of all text, retained or not

	soundBytes int64 // size of sound in base64

	Content   bool // text, refusal, tool calls, images
	Reasoning bool
	Tools     wire.ToolCalls // of hosted tools
}

// AddMessage adds a message or a delta of one. It reports whether there was a token: text,
// reasoning in any vendor's field, a refusal or a tool call. Roles and empty members do not count.
func (o *Output) AddMessage(message []byte) (token bool) {
	thought := false // the same reasoning may be in two fields
	for name, value := range rawjson.Members(message) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "role", "name", "id", "type", "index":
		case "content":
			token = o.addContent(value) || token
		case "audio":
			o.soundBytes += int64(len(rawjson.Field(value, "data")))
			if o.AddAll(value, 0) { // the transcript
				o.Content, token = true, true
			}
		case "refusal", "images":
			if o.AddAll(value, 0) {
				o.Content, token = true, true
			}
		case "tool_calls", "function_call":
			if len(value) > 2 { // not [] or {}
				o.addCalls(value)
				o.Content, token = true, true
			}
		case "annotations":
			o.addCitations(value)
		case "executed_tools":
			o.addExecutedTools(value)
		default:
			if IsThought(name) {
				if thought {
					continue
				}
				if o.AddAll(value, 0) {
					o.Reasoning, token, thought = true, true, true
				}
			}
		}
	}
	return token
}

// IsThought reports whether a member holds reasoning under any vendor's name.
func IsThought(name []byte) bool {
	return bytes.Contains(name, []byte("reasoning")) || bytes.Contains(name, []byte("thinking")) || bytes.Contains(name, []byte("thought"))
}

// addContent adds content: a string, or parts, possibly with thinking.
func (o *Output) addContent(value []byte) (token bool) {
	if value[0] != '[' {
		token = o.AddAll(value, 0)
		o.Content = o.Content || token
		return token
	}
	for _, part := range rawjson.Elements(value) {
		if !o.AddAll(part, 0) {
			continue
		}
		token = true
		if IsThought(rawjson.Field(part, "type")) {
			o.Reasoning = true
		} else {
			o.Content = true
		}
	}
	return token
}

// AddAll adds all text in a value and reports whether there was any.
func (o *Output) AddAll(value []byte, depth int) (any bool) {
	const deepest = 8 // deeper than any vendor's parts
	if len(value) == 0 || depth > deepest {
		return false
	}
	switch value[0] {
	case '"':
		if len(value) <= 2 {
			return false
		}
		o.Add(value)
		return true
	case '[':
		for _, element := range rawjson.Elements(value) {
			any = o.AddAll(element, depth+1) || any
		}
	case '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "type", "id", "index", "format", "signature", "expires_at":
			case "data", "file_data", "url", "image_url": // bytes, not text
				any = any || len(member) > 2
			default:
				any = o.AddAll(member, depth+1) || any
			}
		}
	}
	return any
}

// addCalls adds the names and arguments of tool calls.
func (o *Output) addCalls(value []byte) {
	switch value[0] {
	case '[':
		for _, call := range rawjson.Elements(value) {
			o.addCalls(call)
		}
	case '{':
		for name, member := range rawjson.Members(value) {
			switch string(name) {
			case "function", "custom":
				o.addCalls(member)
			case "name", "arguments", "input":
				o.Add(member) // arguments may be an object instead of a string
			}
		}
	}
}

// addCitations counts one search if sources are cited. The form does not report the number of
// searches.
func (o *Output) addCitations(value []byte) {
	for _, annotation := range rawjson.Elements(value) {
		if rawjson.Unquote(rawjson.Field(annotation, "type")) == "url_citation" {
			o.AddSearch()
			return
		}
	}
}

// AddSearch counts one search for the whole answer.
func (o *Output) AddSearch() {
	if o.Tools["web_search"] == 0 {
		o.Tools.Add("web_search", 1)
	}
}

// addExecutedTools counts the hosted tools that one vendor lists individually.
func (o *Output) addExecutedTools(value []byte) {
	for _, tool := range rawjson.Elements(value) {
		switch kind := rawjson.Unquote(rawjson.Field(tool, "type")); kind {
		case "search":
			o.Tools.Add("web_search", 1)
		case "python":
			o.Tools.Add("code_interpreter", 1)
		default:
			if known := HostedTool(kind); known != "" {
				o.Tools.Add(known, 1)
			}
		}
	}
}

// Add adds a JSON string without its escapes, or another value as it is.
func (o *Output) Add(value []byte) {
	before := len(o.Buffer)
	room := maxBuffer - before
	switch {
	case room <= 0:
		o.Bytes += int64(len(value))
		return
	case !rawjson.IsText(value):
		o.Buffer = append(o.Buffer, value[:min(len(value), room)]...)
	default:
		o.Buffer = rawjson.AppendUnquoted(o.Buffer, value[1 : len(value)-1][:min(len(value)-2, room)])
		if len(value)-2 > room {
			o.Bytes += int64(len(value) - 2 - room)
		}
	}
	o.Bytes += int64(len(o.Buffer) - before)
}

// Text returns Buffer.
func (o *Output) Text() []byte { return o.Buffer }

// Completion returns the gateway's count of the output tokens.
func (o *Output) Completion(c *wire.Counter) int64 { return c.Count(o.Buffer, o.Bytes) }

// SoundTokens returns the gateway's count of the tokens of sound.
func (o *Output) SoundTokens() int64 { return SoundTokens(o.soundBytes, pcmRate) }

// Bytes of sound a second, for the gateway's counts.
const (
	// UsualSoundRate is the rate of compressed speech.
	UsualSoundRate = 8_000
	pcmRate        = 48_000 // streamed answers: 16 bits, 24 kHz
)

// soundTokensPerSecond is the most that a vendor counts for a second of sound (Gemini).
const soundTokensPerSecond = 32

// SoundTokens returns the gateway's token count of sound. base64Size is the size of the sound in base64, and
// rate its bytes per second.
func SoundTokens(base64Size, rate int64) int64 {
	return (base64Size*3/4*soundTokensPerSecond + rate - 1) / rate
}

// Estimate returns a rough count of the tokens without reading the text.
func (o *Output) Estimate() int64 { return EstimatedTokens(o.Bytes) }

// Meter is the common part of the meters of all forms.
type Meter struct {
	Output
	filtered, limited bool
}

// Finish records the end of the answer or of a choice.
func (m *Meter) Finish(kind FinishKind) {
	m.filtered = m.filtered || kind == FinishFiltered
	m.limited = m.limited || kind == FinishLimit
}

// Filtered implements wire.Meter.
func (m *Meter) Filtered() bool { return m.filtered }

// Limited implements wire.Meter.
func (m *Meter) Limited() bool { return m.limited }

// Answer is the common part of the answers of all forms.
type Answer struct {
	wire.AnswerSummary
	Output Output
}

// Finish records the end of the answer or of a choice.
func (a *Answer) Finish(kind FinishKind) {
	a.Filtered = a.Filtered || kind == FinishFiltered
	a.Limited = a.Limited || kind == FinishLimit
}

// Text implements wire.Answer.
func (a *Answer) Text() []byte { return a.Output.Buffer }

// Completion implements wire.Answer.
func (a *Answer) Completion(c *wire.Counter) int64 { return a.Output.Completion(c) }

// SoundTokens implements wire.Answer.
func (a *Answer) SoundTokens() int64 { return a.Output.SoundTokens() }
