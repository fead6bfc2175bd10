package gemini

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a Gemini stream. Every event is a whole answer with new content, and
// most have the usage so far; there is no closing event. It is not safe for concurrent use.
type meter struct {
	requested int             // number of candidates
	check     rawjson.Checker // reused to avoid allocations
	whole     bool            // the answer is not streamed: its one event is the last

	form.Meter
	contentBytes      int64 // size of the output without thoughts
	reports           form.Reports
	hasCandidateCount bool   // the completion includes the candidates
	failed            []byte // the last finishReason of a failure

	choicesSeen, finished form.ChoiceSet
}

// newMeter returns the meter of a stream with n candidates.
func newMeter(n int64) *meter {
	return &meter{requested: int(min(max(n, 1), form.MaxChoices))}
}

// Read implements wire.Meter. A rejected prompt, and a finishReason of a failure, are errors of the
// frame.
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
	f.Finished = m.finished.Size() >= m.requested && m.Complete()
	switch {
	case f.Err != nil:
	case e.Name == "error":
		f.Err = &wire.ProviderError{Body: bytes.Clone(object)}
	case m.failed != nil:
		f.Err = &wire.ProviderError{Reason: string(m.failed)}
	}
	return f, nil
}

// read reads the members of an event.
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
	m.reports.Final = m.reports.Final && (m.whole || m.Complete()) // another candidate may begin
	f.UsageOnly = f.Usage && candidates == 0
	if blocked && candidates == 0 || (failed || candidates == 0) && form.IsError(object, candidates > 0) {
		f.Err = &wire.ProviderError{Body: bytes.Clone(object)}
	}
}

func (m *meter) readCandidate(c AnswerCandidate, f *wire.Frame) {
	for _, part := range rawjson.Elements(c.Parts) {
		part, before := ReadPart(part), m.Bytes
		f.Token = addPart(&m.Output, part) || f.Token
		if !part.Thought {
			m.contentBytes += m.Bytes - before
		}
	}
	m.countTools(c)
	m.choicesSeen.Add(c.Index)
	switch c.Kind {
	case form.FinishNone:
		return
	case form.FinishFailed:
		m.failed = append(m.failed[:0], c.reason[1:len(c.reason)-1]...)
	}
	m.Finish(c.Kind)
	f.Finish = true
	m.finished.Add(c.Index)
}

// countTools counts the calls of hosted tools that a candidate shows. A stream may show them again with
// each event, so the largest number counts.
func (m *meter) countTools(c AnswerCandidate) {
	set := func(tool string, n int64) {
		if known := m.Tools[tool]; n > known {
			m.Tools.Add(tool, n-known)
		}
	}
	if c.Grounding != nil {
		queries, maps := int64(0), int64(0)
		for range rawjson.Elements(rawjson.Field(c.Grounding, "webSearchQueries")) {
			queries++
		}
		for _, chunk := range rawjson.Elements(rawjson.Field(c.Grounding, "groundingChunks")) {
			if rawjson.Field(chunk, "maps") != nil {
				maps = 1
			} else {
				queries = max(queries, 1)
			}
		}
		set("web_search", queries)
		set("google_maps", maps)
	}
	urls := int64(0)
	for range rawjson.Elements(rawjson.Field(c.URLs, "urlMetadata")) {
		urls++
	}
	set("url_context", urls)
}

// addPart adds a part to the output and reports whether there was a token.
func addPart(o *form.Output, part Part) (token bool) {
	if part.Text != nil {
		o.Add(part.Text)
		if part.Thought {
			o.Reasoning = true
		} else {
			o.Content = true
		}
		token = true
	}
	if part.Call != nil {
		for name, value := range rawjson.Members(part.Call) {
			if string(name) == "name" || string(name) == "args" {
				o.Add(value)
			}
		}
		o.Content, token = true, true
	}
	if part.Code != nil {
		o.Tools.Add("code_execution", 1)
	}
	if part.Inline != nil && !part.Thought {
		if _, _, ok := ReadImage(part.Inline); ok {
			o.Content, token = true, true
		}
	}
	return token
}

// setUsage reads a usageMetadata and reports whether it counts the prompt. A usage without
// candidates does not replace one with candidates.
func (m *meter) setUsage(raw []byte) bool {
	if raw == nil {
		return false
	}
	u, complete := readUsage(raw)
	switch {
	case complete:
		m.hasCandidateCount = m.hasCandidateCount || u.Completion > 0
	case m.hasCandidateCount:
		u.Completion, u.Reasoning, u.CountedCompletion = 0, 0, false
	}
	m.reports.Add(u, m.whole || m.Complete())
	return u.CountedPrompt
}

// Usage implements wire.Meter. The final usage comes with the finish. If it counts only the
// thoughts, the rest of the output is estimated.
func (m *meter) Usage() (wire.Usage, bool) {
	u := m.reports.Complete("", m.Tools)
	if !m.hasCandidateCount && u.Reasoning > 0 {
		u.Completion = min(u.Reasoning+form.EstimatedTokens(m.contentBytes), rawjson.MaxCount)
	}
	return u, m.reports.IsFinal()
}

// Complete reports whether every candidate seen has ended.
func (m *meter) Complete() bool {
	return m.finished.Size() > 0 && m.choicesSeen == m.finished
}

// NewMeter returns the meter of a stream with n choices.
func NewMeter(n int64) wire.Meter { return newMeter(n) }
