package wire

import (
	"bytes"

	"tollgate/internal/wire/rawjson"
)

// GeminiMeter reads the events of a Gemini stream as they pass. Every event is
// a whole answer that holds what is new, and most hold the usage so far; there
// is no closing event. Not for concurrent use.
type GeminiMeter struct {
	choices int             // asked for
	check   rawjson.Checker // kept for its memory
	whole   bool            // the answer is not streamed: its one event is the last

	made     produced
	spoken   int64 // bytes of it that are no thoughts
	reports  reports
	counted  bool   // its completion counts the candidates
	failed   []byte // the last finishReason that means failure
	filtered bool
	limited  bool

	seen, finished choiceSet
}

// newGeminiMeter makes the meter of a stream with n candidates.
func newGeminiMeter(n int64) *GeminiMeter {
	return &GeminiMeter{choices: int(min(max(n, 1), maxChoices))}
}

// Read reads the next event. It returns ErrMalformed for data that is no JSON
// object. A prompt that was refused and a finishReason that means failure where
// there is no content are errors of the frame.
func (m *GeminiMeter) Read(e Event) (Frame, error) {
	data := bytes.TrimSpace(e.Data)
	var f Frame
	if len(data) == 0 {
		return f, nil
	}
	if !m.check.Valid(data) {
		return f, ErrMalformed
	}
	object := geminiObject(data)
	if object[0] != '{' {
		return f, ErrMalformed
	}
	m.read(object, &f)
	f.Finished = m.finished.size() >= m.choices && m.Complete()
	switch {
	case f.Err != nil:
	case e.Name == "error":
		f.Err = &ProviderError{Body: bytes.Clone(object)}
	case f.Finished && m.failed != nil && !m.made.content:
		f.Err = &ProviderError{Reason: string(m.failed)}
	}
	return f, nil
}

// read reads every member of an event that matters.
func (m *GeminiMeter) read(object []byte, f *Frame) {
	candidates, blocked, failed := 0, false, false
	var usage []byte
	for name, value := range rawjson.Members(object) {
		if rawjson.IsNull(value) {
			continue
		}
		switch string(name) {
		case "candidates":
			for i, candidate := range rawjson.Elements(value) {
				candidates++
				m.readCandidate(readGeminiCandidate(candidate, i), f)
			}
		case "promptFeedback":
			blocked = isGeminiBlock(value)
		case "usageMetadata":
			usage = value
		case "error":
			failed = true
		}
	}
	f.Usage = m.setUsage(usage)
	m.reports.final = m.reports.final && (m.whole || m.Complete()) // not when another candidate begins
	f.UsageOnly = f.Usage && candidates == 0
	if blocked && candidates == 0 || (failed || candidates == 0) && isError(object, candidates > 0) {
		f.Err = &ProviderError{Body: bytes.Clone(object)}
	}
}

func (m *GeminiMeter) readCandidate(c geminiCandidate, f *Frame) {
	for _, part := range rawjson.Elements(c.parts) {
		part, before := readGeminiPart(part), m.made.bytes
		f.Token = noteGemini(&m.made, part) || f.Token
		if !part.thought {
			m.spoken += m.made.bytes - before
		}
	}
	m.seen.add(c.index)
	switch c.kind {
	case finishNone:
		return
	case finishFailed:
		m.failed = append(m.failed[:0], c.why[1:len(c.why)-1]...)
	case finishFiltered:
		m.filtered = true
	case finishLimit:
		m.limited = true
	}
	f.Finish = true
	m.finished.add(c.index)
}

// noteGemini adds a part to what was produced and tells whether it holds any
// token.
func noteGemini(p *produced, part geminiPart) (token bool) {
	if part.text != nil {
		p.add(part.text)
		if part.thought {
			p.reasoning = true
		} else {
			p.content = true
		}
		token = true
	}
	if part.call != nil {
		for name, value := range rawjson.Members(part.call) {
			if string(name) == "name" || string(name) == "args" {
				p.add(value)
			}
		}
		p.content, token = true, true
	}
	if part.inline != nil && !part.thought {
		if _, _, ok := readGeminiImage(part.inline); ok {
			p.content, token = true, true
		}
	}
	return token
}

// setUsage takes a usageMetadata and tells whether it counts the prompt. One
// that leaves out the candidates says less than one that has counted them.
func (m *GeminiMeter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u, counted := readGeminiUsage(raw)
	switch {
	case counted:
		m.counted = m.counted || u.Completion > 0
	case m.counted:
		u.Completion, u.Reasoning, u.completion = 0, 0, false
	}
	m.reports.take(u, m.whole || m.Complete())
	return u.prompt
}

// Usage returns what the provider reported; false until its last word, which
// comes with the finish. Before that, counts may be too low. Where it counted
// the thoughts alone, what it said besides is estimated.
func (m *GeminiMeter) Usage() (Usage, bool) {
	u := m.reports.usage
	if !m.counted && u.Reasoning > 0 {
		u.Completion = min(u.Reasoning+estimatedTokens(m.spoken), rawjson.MaxCount)
	}
	return u, m.reports.known()
}

// Complete tells whether every candidate that was seen has ended.
func (m *GeminiMeter) Complete() bool {
	return m.finished.size() > 0 && m.seen == m.finished
}

// Filtered tells whether a candidate was ended by the provider's safety
// filters.
func (m *GeminiMeter) Filtered() bool { return m.filtered }

// Limited tells whether a candidate was ended by the limit of tokens.
func (m *GeminiMeter) Limited() bool { return m.limited }

// Text returns what was produced so far (text, thoughts, calls), as far as it
// is kept. It is valid until the next Read.
func (m *GeminiMeter) Text() []byte { return m.made.text }

// Completion returns our own count of the tokens produced so far.
func (m *GeminiMeter) Completion(c *Counter) int64 { return c.Count(m.made.text, m.made.bytes) }

// Estimate is a rough count of the tokens produced so far, without looking
// into the text.
func (m *GeminiMeter) Estimate() int64 { return m.made.estimate() }

// GeminiAnswer is an answer of the Gemini form that was not streamed.
type GeminiAnswer struct {
	Outcome
	meter *GeminiMeter
}

// ReadGeminiAnswer reads a provider's answer; ErrMalformed when it is no JSON
// object.
func ReadGeminiAnswer(body []byte) (Answer, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, ErrMalformed
	}
	m := newGeminiMeter(1) // an answer is like a stream of one event
	m.whole = true
	f, err := m.Read(Event{Data: body})
	if err != nil {
		return nil, err
	}
	return &GeminiAnswer{meter: m, Outcome: Outcome{
		Content: m.made.content, Reasoning: m.made.reasoning,
		Limited: m.limited, Filtered: m.filtered, Ended: m.Complete(), Err: f.Err,
	}}, nil
}

// Usage returns what the provider reported; false when it did not say how much
// it produced.
func (a *GeminiAnswer) Usage() (Usage, bool) { return a.meter.Usage() }

// Text returns what was produced (text, thoughts, calls), as far as it is
// kept.
func (a *GeminiAnswer) Text() []byte { return a.meter.Text() }

// Completion returns our own count of the tokens produced.
func (a *GeminiAnswer) Completion(c *Counter) int64 { return a.meter.Completion(c) }

// NewGeminiMeter makes the meter of a stream with n choices.
func NewGeminiMeter(n int64) Meter { return newGeminiMeter(n) }
