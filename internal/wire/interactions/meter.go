package interactions

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// meter reads the events of a stream. It is not safe for concurrent use.
type meter struct {
	check rawjson.Checker // reused to avoid allocations
	form.Meter
	reports form.Reports
	tier    string
	steps   bool // a step has started
	ended   bool
}

// NewMeter returns the meter of a stream.
func NewMeter() wire.Meter { return new(meter) }

// Read implements wire.Meter.
func (m *meter) Read(e sse.Event) (wire.Frame, error) {
	var f wire.Frame
	data := bytes.TrimSpace(e.Data)
	switch {
	case len(data) == 0:
	case string(data) == "[DONE]":
		f.Done = true
	case data[0] != '{' || !m.check.Valid(data):
		return f, wire.ErrMalformed
	default:
		m.read(e.Name, data, &f)
	}
	f.Finished = m.ended
	return f, nil
}

func (m *meter) read(name string, data []byte, f *wire.Frame) {
	e := readEvent(name, data)
	if e.usage != nil {
		u := readUsage(e.usage)
		m.reports.Add(u, false)
		f.Usage = u.CountedPrompt
	}
	switch {
	case e.kind == "step.start":
		m.steps = true
		f.Token = m.addStep(e.step)
	case e.kind == "step.delta":
		f.Token = m.addDelta(e.delta)
	case e.kind == completedEvent:
		if !m.steps {
			f.Token = m.addSteps(e.interaction)
		}
		m.end(endOf(e.interaction), e.interaction, f)
	case e.kind == "error":
		end := ending{}
		end.fail(rawjson.Field(data, "error"))
		if m.end(end, nil, f); f.Err != nil {
			f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
		}
	case e.hasFailed():
		m.end(ending{kind: form.FinishFailed, reason: e.kind}, e.interaction, f)
	case form.IsError(data, false):
		f.Err = &wire.ProviderError{Body: bytes.Clone(data)}
	}
}

// completedEvent is the last event of an interaction, whatever its status.
const completedEvent = "interaction.completed"

// end reads the end of an interaction. Its usage counts even if the answer failed.
func (m *meter) end(end ending, interaction []byte, f *wire.Frame) {
	u := readUsage(rawjson.Field(interaction, "usage"))
	m.reports.Add(u, true)
	f.Usage = f.Usage || u.CountedPrompt
	m.tier = rawjson.Unquote(rawjson.Field(interaction, "service_tier"))
	if end.kind == form.FinishFailed {
		f.Err = &wire.ProviderError{Reason: end.reason}
		if end.err != nil {
			f.Err = &wire.ProviderError{Body: rawjson.Put(nil, `{"error":`, end.err, "}")}
		}
		return
	}
	m.Finish(end.kind)
	f.Finish, m.ended = true, true
}

// addSteps adds the steps of an interaction to the output and reports whether there was a token.
func (m *meter) addSteps(interaction []byte) (token bool) {
	for _, step := range rawjson.Elements(rawjson.Field(interaction, "steps")) {
		token = m.addStep(step) || token
	}
	return token
}

// addStep adds a step, or its start.
func (m *meter) addStep(step []byte) (token bool) {
	switch typeOf(step) {
	case "model_output":
		for _, content := range rawjson.Elements(rawjson.Field(step, "content")) {
			token = m.addContent(content) || token
		}
	case "thought":
		for _, content := range rawjson.Elements(rawjson.Field(step, "summary")) {
			token = m.addThought(content) || token
		}
	case "function_call":
		if name := rawjson.Field(step, "name"); rawjson.IsText(name) {
			m.Add(name)
			m.Content, token = true, true
		}
		if arguments := rawjson.Field(step, "arguments"); len(arguments) > 2 {
			m.Add(arguments)
		}
	}
	return token
}

// addDelta adds a piece of a step.
func (m *meter) addDelta(delta []byte) (token bool) {
	switch typeOf(delta) {
	case "thought_summary":
		return m.addThought(rawjson.Field(delta, "content"))
	case "arguments_delta":
		arguments := rawjson.Field(delta, "arguments")
		if len(arguments) <= 2 {
			return false
		}
		m.Add(arguments)
		m.Content = true
		return true
	}
	return m.addContent(delta)
}

// addContent adds a text or an image.
func (m *meter) addContent(content []byte) (token bool) {
	if text := textOf(content); text != nil {
		m.Add(text)
		m.Content = true
		return true
	}
	if _, _, ok := imageOf(content); ok {
		m.Content = true
		return true
	}
	return false
}

func (m *meter) addThought(content []byte) (token bool) {
	text := textOf(content)
	if text == nil {
		return false
	}
	m.Add(text)
	m.Reasoning = true
	return true
}

// Usage implements wire.Meter. The final usage comes with the last event.
func (m *meter) Usage() (wire.Usage, bool) {
	return m.reports.Complete(m.tier, nil), m.reports.IsFinal()
}

// Complete implements wire.Meter.
func (m *meter) Complete() bool { return m.ended }

// answer is an answer that was not streamed.
type answer struct {
	wire.AnswerSummary
	*meter
}

// ReadAnswer reads a provider's answer. It returns ErrMalformed if body is not a JSON object.
func ReadAnswer(body []byte) (wire.Answer, error) {
	body = bytes.TrimSpace(body)
	m := new(meter)
	if len(body) == 0 || body[0] != '{' || !m.check.Valid(body) {
		return nil, wire.ErrMalformed
	}
	var f wire.Frame
	m.addSteps(body)
	if form.IsError(body, false) {
		f.Err = &wire.ProviderError{Body: bytes.Clone(body)}
	} else {
		m.end(endOf(body), body, &f)
	}
	return &answer{meter: m, AnswerSummary: wire.AnswerSummary{
		Content: m.Content, Reasoning: m.Reasoning, Limited: m.Limited(), Filtered: m.Filtered(), Ended: m.ended, Err: f.Err,
	}}, nil
}

// Usage implements wire.Answer.
func (a *answer) Usage() (wire.Usage, bool) { return a.meter.Usage() }
