package fakestudio

import (
	"net/http"
	"testing"
)

// Fal is a provider that speaks the protocol of fal.
type Fal struct{ Studio }

// NewFal starts one.
func NewFal(t testing.TB) *Fal {
	t.Helper()
	f := &Fal{}
	f.open(t, func(w http.ResponseWriter, r *http.Request) { f.strange(w, r) })
	return f
}

// URL is the base_url of lines to it.
func (f *Fal) URL() string { return f.Host() }
