package gemini

import (
	"bytes"

	"tollgate/internal/wire"
	"tollgate/internal/wire/sse"
)

// answer is an answer of the Gemini form that was not streamed.
type answer struct {
	wire.AnswerSummary
	meter *meter
}

// ReadAnswer reads a provider's answer. It returns ErrMalformed if body is not a JSON object.
func ReadAnswer(body []byte) (wire.Answer, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, wire.ErrMalformed
	}
	m := newMeter(1) // an answer is like a stream of one event
	m.whole = true
	f, err := m.Read(sse.Event{Data: body})
	if err != nil {
		return nil, err
	}
	return &answer{meter: m, AnswerSummary: wire.AnswerSummary{
		Content: m.Content, Reasoning: m.Reasoning,
		Limited: m.Limited(), Filtered: m.Filtered(), Ended: m.Complete(), Err: f.Err,
	}}, nil
}

func (a *answer) Usage() (wire.Usage, bool) { return a.meter.Usage() }

func (a *answer) Text() []byte { return a.meter.Text() }

func (a *answer) Completion(c *wire.Counter) int64 { return a.meter.Completion(c) }

func (a *answer) SoundTokens() int64 { return a.meter.SoundTokens() }
