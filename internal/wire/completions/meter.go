package completions

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the frames of a chat-completions stream as they pass. It
// looks for the few words that matter and decodes only the frames that have
// them; vendors' deviations are tolerated. Not for concurrent use.
type meter struct {
	choices int // asked for

	form.Meter
	reports form.Reports
	shown   bool // the last word on usage stood at the top level of a frame, where clients look
	tier    string

	seen, finished form.ChoiceSet
	begun          bool // a token came
	id, created    []byte
	pattern        framePattern
}

// newMeter makes the meter of a stream with n choices.
func newMeter(n int64) *meter {
	return &meter{choices: int(min(max(n, 1), form.MaxChoices))}
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object; frames after the first token that hold nothing to read are checked
// by their brackets alone.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	data := bytes.TrimSpace(e.Data)
	f := wire.Frame{}
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.Done = true
	case e.Name == "error":
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	case data[0] != '{' || data[len(data)-1] != '}':
		return wire.Frame{}, wire.ErrMalformed
	case m.begun && m.pattern.read(data, m.choices > 1, &m.Output, &f.Token):
		m.reports.Final = false // another choice goes on
	case m.begun && isOrdinary(data):
		f.Token = m.readDeltas(data)
		m.seeChoices(data)
		m.reports.Final = m.reports.Final && !f.Token
	default:
		if !rawjson.IsValid(data) {
			return wire.Frame{}, wire.ErrMalformed
		}
		m.readWhole(data, &f)
	}
	m.begun = m.begun || f.Token
	f.Finished = m.finished.Size() >= m.choices && m.Complete()
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
func (m *meter) readDeltas(data []byte) (token bool) {
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
		token = m.Note(message) || token
		m.pattern.learn(data, message)
	}
}

// seeChoices notes whose deltas an ordinary frame holds: a choice may have no
// other frames before its finish.
func (m *meter) seeChoices(data []byte) {
	for name, value := range rawjson.Members(data) {
		if string(name) != "choices" {
			continue
		}
		for i, choice := range rawjson.Elements(value) {
			index := i
			for name, value := range rawjson.Members(choice) {
				if string(name) == "index" {
					index = indexOf(value, i)
				}
			}
			m.seen.Add(index)
		}
	}
}

// indexOf is a choice's index; without one it is the choice's place.
func indexOf(value []byte, position int) int {
	if n, ok := rawjson.Count(value); ok {
		return int(n)
	}
	return position
}

// readWhole reads every member of a frame that matters.
func (m *meter) readWhole(data []byte, f *wire.Frame) {
	choices := 0
	var usage, vendors, ofChoice []byte
	for name, value := range rawjson.Members(data) {
		if rawjson.NonNull(value) == nil {
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
	m.reports.Final = m.reports.Final && m.Complete() // not when another choice begins
	f.UsageOnly = f.Usage && choices == 0
	m.shown = m.shown || f.Usage && m.reports.Final
	if form.IsError(data, choices > 0) {
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	}
}

// readChoice reads a choice and returns the usage that it shows, if any.
func (m *meter) readChoice(choice []byte, position int, f *wire.Frame) (usage []byte) {
	index := position
	reason := ""
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "index":
			index = indexOf(value, position)
		case "delta", "message":
			f.Token = m.Note(value) || f.Token
		case "finish_reason":
			reason = rawjson.Unquote(value)
		case "usage":
			usage = rawjson.NonNull(value)
		}
	}
	m.seen.Add(index)
	switch kind := form.KindOfFinish(reason); kind {
	case form.FinishNone:
	case form.FinishFailed:
		f.Err = &wire.ProviderError{Reason: reason}
	default:
		f.Finish = true
		m.finished.Add(index)
		m.Finish(kind)
	}
	return usage
}

// setUsage takes a usage object and tells whether it counts the prompt and the
// completion.
func (m *meter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u := form.ReadUsage(raw)
	m.reports.Take(u, m.Complete())
	return u.CountedPrompt && u.CountedCompletion
}

// Usage returns what the provider reported, wherever it stood, with the tier
// and the hosted tools that the frames showed; false until its last word, which
// comes with the finish or behind it. Before that, counts may be too low.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.reports.With(m.tier, m.Tools.ToolCalls), m.reports.Known()
}

// Complete tells whether every choice that was seen has ended.
func (m *meter) Complete() bool {
	return m.finished.Size() > 0 && m.seen == m.finished
}

// NewMeter makes the meter of a stream with n choices.
func NewMeter(n int64) wire.Meter { return newMeter(n) }
