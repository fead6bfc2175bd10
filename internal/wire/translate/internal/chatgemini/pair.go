// Package chatgemini owns the translation of chat completions to Gemini's form and back.
//
// Invariants: texts and numbers are copied unchanged; the client's stream is well formed whatever
// the provider sends.
package chatgemini

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/gemini"
)

// New returns the pair for chat completions and a Gemini line.
func New(r *completions.Request, id wire.Identity) wire.Pair { return chatOnGemini{r, id} }

// chatOnGemini is the pair for chat completions and a Gemini line.
type chatOnGemini struct {
	*completions.Request
	id wire.Identity
}

func (r chatOnGemini) Events() (wire.Meter, wire.Writer) {
	return gemini.NewMeter(r.N), newStream(r.id, r.IncludeUsage)
}

func (r chatOnGemini) Read(raw []byte) (wire.Answer, error) { return gemini.ReadAnswer(raw) }

func (r chatOnGemini) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := wholeAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}
