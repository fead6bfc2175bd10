package wire

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
)

// ChatMeter reads the frames of a chat-completions stream as they pass. It
// looks for the few words that matter and decodes only the frames that have
// them; vendors' deviations are tolerated. Not for concurrent use.
type ChatMeter struct {
	choices int // asked for

	made     produced
	reports  reports
	shown    bool // the last word on usage stood at the top level of a frame, where clients look
	tier     string
	filtered bool
	limited  bool

	seen, finished choiceSet
	begun          bool // a token came
	id, created    []byte
	like           likeness
}

// newChatMeter makes the meter of a stream with n choices.
func newChatMeter(n int64) *ChatMeter {
	return &ChatMeter{choices: int(min(max(n, 1), maxChoices))}
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object; frames after the first token that hold nothing to read are checked
// by their brackets alone.
func (m *ChatMeter) Read(e Event) (Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := Frame{}
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.Done = true
	case e.Name == "error":
		f.Err = &ProviderError{Body: bytes.Clone(data)}
	case data[0] != '{' || data[len(data)-1] != '}':
		return Frame{}, ErrMalformed
	case m.begun && m.like.read(data, &m.made, &f.Token):
		m.reports.final = false // another choice goes on
	case m.begun && isOrdinary(data):
		f.Token = m.readDeltas(data)
		m.reports.final = m.reports.final && !f.Token
	default:
		if !rawjson.IsValid(data) {
			return Frame{}, ErrMalformed
		}
		m.readWhole(data, &f)
	}
	m.begun = m.begun || f.Token
	f.Finished = m.finished.size() >= m.choices && m.Complete()
	return f, nil
}

// isOrdinary tells whether a frame holds deltas only: it has one, and none of
// the words that have to be read stands in it with a value. A word inside a
// text has a backslash before its second quote, so it is not found.
func isOrdinary(data []byte) bool {
	if !bytes.Contains(data, []byte(`"delta"`)) {
		return false
	}
	for _, word := range [...]string{`"finish_reason"`, `"usage"`, `"error"`, `"annotations"`, `"executed_tools"`, `"base_resp"`} {
		for rest := data; ; {
			i := bytes.Index(rest, []byte(word))
			if i < 0 {
				break
			}
			rest = rest[i+len(word):]
			at := rawjson.SkipSpace(rest, 0)
			if at >= len(rest) || rest[at] != ':' {
				continue // a value, not a key
			}
			if at = rawjson.SkipSpace(rest, at+1); at >= len(rest) || rest[at] != 'n' {
				return false
			}
		}
	}
	return true
}

// readDeltas reads the deltas of an ordinary frame.
func (m *ChatMeter) readDeltas(data []byte) (token bool) {
	for rest := data; ; {
		i := bytes.Index(rest, []byte(`"delta"`))
		if i < 0 {
			return token
		}
		rest = rest[i+len(`"delta"`):]
		at := rawjson.SkipSpace(rest, 0)
		if at >= len(rest) || rest[at] != ':' {
			continue
		}
		at = rawjson.SkipSpace(rest, at+1)
		message := rest[min(at, len(rest)):]
		token = m.made.note(message) || token
		m.like.learn(data, message)
	}
}

// readWhole reads every member of a frame that matters.
func (m *ChatMeter) readWhole(data []byte, f *Frame) {
	choices := 0
	var usage, vendors, ofChoice []byte
	for name, value := range rawjson.Members(data) {
		if rawjson.IsNull(value) {
			continue
		}
		switch string(name) {
		case "id":
			if m.id == nil {
				m.id = bytes.Clone(value)
			}
		case "created":
			if m.created == nil {
				m.created = bytes.Clone(value)
			}
		case "service_tier":
			m.tier = rawjson.Unquote(value)
		case "usage":
			usage = value
		case "x_groq":
			vendors = rawjson.Field(value, "usage")
		case "choices":
			for i, choice := range rawjson.Elements(value) {
				choices++
				if raw := m.readChoice(choice, i, f); raw != nil {
					ofChoice = raw
				}
			}
		}
	}
	m.setUsage(vendors)
	m.setUsage(ofChoice)
	f.Usage = m.setUsage(usage)
	m.reports.final = m.reports.final && m.Complete() // not when another choice begins
	f.UsageOnly = f.Usage && choices == 0
	m.shown = m.shown || f.Usage && m.reports.final
	if isError(data, choices > 0) {
		f.Err = &ProviderError{Body: bytes.Clone(data)}
	}
}

// readChoice reads a choice and returns the usage that it shows, if any.
func (m *ChatMeter) readChoice(choice []byte, position int, f *Frame) (usage []byte) {
	index := position
	reason := ""
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "index":
			if n, ok := rawjson.Count(value); ok {
				index = int(n)
			}
		case "delta", "message":
			f.Token = m.made.note(value) || f.Token
		case "finish_reason":
			reason = rawjson.Unquote(value)
		case "usage":
			usage = rawjson.Present(value)
		}
	}
	m.seen.add(index)
	switch kind := kindOfFinish(reason); kind {
	case finishNone:
	case finishFailed:
		f.Err = &ProviderError{Reason: reason}
	default:
		f.Finish = true
		m.finished.add(index)
		m.filtered = m.filtered || kind == finishFiltered
		m.limited = m.limited || kind == finishLimit
	}
	return usage
}

// setUsage takes a usage object and tells whether it counts the prompt and the
// completion.
func (m *ChatMeter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u := readUsage(raw)
	m.reports.take(u, m.Complete())
	return u.prompt && u.completion
}

// Usage returns what the provider reported, wherever it stood, with the tier
// and the hosted tools that the frames showed; false until its last word, which
// comes with the finish or behind it. Before that, counts may be too low.
func (m *ChatMeter) Usage() (Usage, bool) {
	return m.reports.with(m.tier, m.made.tools.ToolCalls), m.reports.known()
}

// Complete tells whether every choice that was seen has ended.
func (m *ChatMeter) Complete() bool {
	return m.finished.size() > 0 && m.seen == m.finished
}

// Filtered tells whether a choice was ended by the provider's content filter.
func (m *ChatMeter) Filtered() bool { return m.filtered }

// Limited tells whether a choice was ended by the limit of tokens.
func (m *ChatMeter) Limited() bool { return m.limited }

// Text returns what was produced so far (text, reasoning, tool calls), as far
// as it is kept. It is valid until the next Read.
func (m *ChatMeter) Text() []byte { return m.made.text }

// Completion returns our own count of the tokens produced so far.
func (m *ChatMeter) Completion(c *Counter) int64 { return c.Count(m.made.text, m.made.bytes) }

// Estimate is a rough count of the tokens produced so far, without looking
// into the text.
func (m *ChatMeter) Estimate() int64 { return m.made.estimate() }

// NewChatMeter makes the meter of a stream with n choices.
func NewChatMeter(n int64) Meter { return newChatMeter(n) }
