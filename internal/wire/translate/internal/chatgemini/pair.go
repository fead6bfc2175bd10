// Package chatgemini owns the translation of chat completions into Gemini's form
// and back.
//
// Invariants: texts and numbers are copied as they stand; the client's stream is
// well formed whatever the provider sends.
package chatgemini

import (
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/internal/gemini"
)

// New is how a request of chat completions meets a line of Gemini.
func New(r *completions.Request, id wire.Identity) wire.Pair { return chatOnGemini{r, id} }

// chatOnGemini puts chat completions to a line of Gemini.
type chatOnGemini struct {
	*completions.Request
	id wire.Identity
}

// Events implements Pair.
func (r chatOnGemini) Events() (wire.Meter, wire.Writer) {
	return gemini.NewMeter(r.N), newStream(r.id, r.IncludeUsage)
}

// Read implements Pair.
func (r chatOnGemini) Read(raw []byte) (wire.Answer, error) { return gemini.ReadAnswer(raw) }

// Render implements Pair.
func (r chatOnGemini) Render(_ wire.Answer, raw []byte, u wire.Usage) ([3][]byte, error) {
	out, err := wholeAnswer(raw, r.id, u)
	return [3][]byte{out}, err
}
