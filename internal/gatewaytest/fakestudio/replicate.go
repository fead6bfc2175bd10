package fakestudio

import (
	"net/http"
	"testing"
)

// Replicate is a provider that speaks the protocol of replicate.
type Replicate struct{ Studio }

// NewReplicate starts one.
func NewReplicate(t testing.TB) *Replicate {
	t.Helper()
	f := &Replicate{}
	f.open(t, func(w http.ResponseWriter, r *http.Request) { f.strange(w, r) })
	return f
}

// URL is the base_url of lines to it.
func (f *Replicate) URL() string { return f.Host() }
