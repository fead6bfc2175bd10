package completions

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the frames of a chat-completions stream. It looks for a few words and decodes only
// the frames with these words. It tolerates vendors' deviations. It is not safe for concurrent use.
type meter struct {
	requested int // number of choices

	form.Meter
	reports    form.Reports
	usageShown bool // the final usage was at the top level of a frame, where clients look
	tier       string

	choicesSeen, finished form.ChoiceSet
	hasToken              bool // a frame with a token was read
	id, created           []byte
	pattern               framePattern
}

// newMeter returns the meter of a stream with n choices.
func newMeter(n int64) *meter {
	return &meter{requested: int(min(max(n, 1), form.MaxChoices))}
}

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
	case m.hasToken && m.pattern.read(data, m.requested > 1, &m.Output, &f.Token):
		m.reports.Final = false // another choice continues
	case m.hasToken && isOrdinary(data):
		f.Token = m.readDeltas(data)
		m.addChoices(data)
		m.reports.Final = m.reports.Final && !f.Token
	default:
		if !rawjson.IsValid(data) {
			return wire.Frame{}, wire.ErrMalformed
		}
		m.readWhole(data, &f)
	}
	m.hasToken = m.hasToken || f.Token
	f.Finished = m.finished.Size() >= m.requested && m.Complete()
	return f, nil
}

// isOrdinary reports whether a frame holds only deltas: it has a delta, and none of the words below has a
// value other than null. (A word inside a text has a backslash before its second quote, so it does not
// match.)
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
		token = m.AddMessage(message) || token
		m.pattern.learn(data, message)
	}
}

// addChoices records the choices of an ordinary frame. A choice may have no other frames before its
// finish.
func (m *meter) addChoices(data []byte) {
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
			m.choicesSeen.Add(index)
		}
	}
}

// indexOf returns a choice's index, or its position if it has none.
func indexOf(value []byte, position int) int {
	if n, ok := rawjson.Count(value); ok {
		return int(n)
	}
	return position
}

// readWhole reads every member of a frame.
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
	m.reports.Final = m.reports.Final && m.Complete() // another choice may begin
	f.UsageOnly = f.Usage && choices == 0
	m.usageShown = m.usageShown || f.Usage && m.reports.Final
	if form.IsError(data, choices > 0) {
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	}
}

// readChoice reads a choice and returns its usage, if any.
func (m *meter) readChoice(choice []byte, position int, f *wire.Frame) (usage []byte) {
	index := position
	reason := ""
	for name, value := range rawjson.Members(choice) {
		switch string(name) {
		case "index":
			index = indexOf(value, position)
		case "delta", "message":
			f.Token = m.AddMessage(value) || f.Token
		case "finish_reason":
			reason = rawjson.Unquote(value)
		case "usage":
			usage = rawjson.NonNull(value)
		}
	}
	m.choicesSeen.Add(index)
	switch kind := form.FinishOf(reason); kind {
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

// setUsage reads a usage object and reports whether it counts the prompt and the completion.
func (m *meter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u := form.ReadUsage(raw)
	m.reports.Add(u, m.Complete())
	return u.CountedPrompt && u.CountedCompletion
}

// Usage implements wire.Meter. The final usage comes with the finish or after it.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.reports.Complete(m.tier, m.Tools), m.reports.IsFinal()
}

// Complete reports whether every choice seen has ended.
func (m *meter) Complete() bool {
	return m.finished.Size() > 0 && m.choicesSeen == m.finished
}

// NewMeter returns the meter of a stream with n choices.
func NewMeter(n int64) wire.Meter { return newMeter(n) }
