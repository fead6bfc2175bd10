package gemini

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a Gemini stream as they pass. Every event is
// a whole answer that holds what is new, and most hold the usage so far; there
// is no closing event. Not for concurrent use.
type meter struct {
	choices int             // asked for
	check   rawjson.Checker // kept for its memory
	whole   bool            // the answer is not streamed: its one event is the last

	form.Meter
	spoken  int64 // bytes of it that are no thoughts
	reports form.Reports
	counted bool   // its completion counts the candidates
	failed  []byte // the last finishReason that means failure

	seen, finished form.ChoiceSet
}

// newMeter makes the meter of a stream with n candidates.
func newMeter(n int64) *meter {
	return &meter{choices: int(min(max(n, 1), form.MaxChoices))}
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object. A prompt that was refused and a finishReason that means failure where
// there is no content are errors of the frame.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	data := bytes.TrimSpace(e.Data)
	var f wire.Frame
	if len(data) == 0 {
		return f, nil
	}
	if !m.check.Valid(data) {
		return f, wire.ErrMalformed
	}
	object := Object(data)
	if object[0] != '{' {
		return f, wire.ErrMalformed
	}
	m.read(object, &f)
	f.Finished = m.finished.Size() >= m.choices && m.Complete()
	switch {
	case f.Err != nil:
	case e.Name == "error":
		f.Err = &wire.ProviderError{Body: bytes.Clone(object)}
	case f.Finished && m.failed != nil && !m.Content:
		f.Err = &wire.ProviderError{Reason: string(m.failed)}
	}
	return f, nil
}

// read reads every member of an event that matters.
func (m *meter) read(object []byte, f *wire.Frame) {
	candidates, blocked, failed := 0, false, false
	var usage []byte
	for name, value := range rawjson.Members(object) {
		if rawjson.NonNull(value) == nil {
			continue
		}
		switch string(name) {
		case "candidates":
			for i, candidate := range rawjson.Elements(value) {
				candidates++
				m.readCandidate(ReadCandidate(candidate, i), f)
			}
		case "promptFeedback":
			blocked = isBlock(value)
		case "usageMetadata":
			usage = value
		case "error":
			failed = true
		}
	}
	f.Usage = m.setUsage(usage)
	m.reports.Final = m.reports.Final && (m.whole || m.Complete()) // not when another candidate begins
	f.UsageOnly = f.Usage && candidates == 0
	if blocked && candidates == 0 || (failed || candidates == 0) && form.IsError(object, candidates > 0) {
		f.Err = &wire.ProviderError{Body: bytes.Clone(object)}
	}
}

func (m *meter) readCandidate(c Generated, f *wire.Frame) {
	for _, part := range rawjson.Elements(c.Parts) {
		part, before := ReadPart(part), m.Bytes
		f.Token = notePart(&m.Output, part) || f.Token
		if !part.Thought {
			m.spoken += m.Bytes - before
		}
	}
	m.seen.Add(c.Index)
	switch c.Kind {
	case form.FinishNone:
		return
	case form.FinishFailed:
		m.failed = append(m.failed[:0], c.why[1:len(c.why)-1]...)
	}
	m.Finish(c.Kind)
	f.Finish = true
	m.finished.Add(c.Index)
}

// notePart adds a part to what was produced and tells whether it holds any
// token.
func notePart(p *form.Output, part Part) (token bool) {
	if part.Text != nil {
		p.Add(part.Text)
		if part.Thought {
			p.Reasoning = true
		} else {
			p.Content = true
		}
		token = true
	}
	if part.Call != nil {
		for name, value := range rawjson.Members(part.Call) {
			if string(name) == "name" || string(name) == "args" {
				p.Add(value)
			}
		}
		p.Content, token = true, true
	}
	if part.Inline != nil && !part.Thought {
		if _, _, ok := ReadImage(part.Inline); ok {
			p.Content, token = true, true
		}
	}
	return token
}

// setUsage takes a usageMetadata and tells whether it counts the prompt. One
// that leaves out the candidates says less than one that has counted them.
func (m *meter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u, counted := readUsage(raw)
	switch {
	case counted:
		m.counted = m.counted || u.Completion > 0
	case m.counted:
		u.Completion, u.Reasoning, u.CountedCompletion = 0, 0, false
	}
	m.reports.Take(u, m.whole || m.Complete())
	return u.CountedPrompt
}

// Usage returns what the provider reported; false until its last word, which
// comes with the finish. Before that, counts may be too low. Where it counted
// the thoughts alone, what it said besides is estimated.
func (m *meter) Usage() (wire.Usage, bool) {
	u := m.reports.Usage
	if !m.counted && u.Reasoning > 0 {
		u.Completion = min(u.Reasoning+form.EstimatedTokens(m.spoken), rawjson.MaxCount)
	}
	return u, m.reports.Known()
}

// Complete tells whether every candidate that was seen has ended.
func (m *meter) Complete() bool {
	return m.finished.Size() > 0 && m.seen == m.finished
}

// NewMeter makes the meter of a stream with n choices.
func NewMeter(n int64) wire.Meter { return newMeter(n) }
