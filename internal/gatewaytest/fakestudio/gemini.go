package fakestudio

import (
	"net/http"
	"testing"
)

// Gemini is a fake of Google's image output, of Veo and of Omni.
type Gemini struct{ Studio }

// NewGemini starts one. It ends with the test.
func NewGemini(t testing.TB) *Gemini {
	g := &Gemini{}
	g.open(t, http.HandlerFunc(g.strange))
	return g
}

// URL is the base address for a line.
func (g *Gemini) URL() string { return g.Host() + "/v1beta" }
