package fakestudio

import "testing"

// Ark is a fake of Volcengine's and BytePlus's model service: pictures in the
// answer, clips as tasks.
type Ark struct{ Studio }

// NewArk starts one. It ends with the test.
func NewArk(t testing.TB) *Ark {
	a := &Ark{}
	a.open(t, a.strange)
	return a
}

// URL is a line's base_url for it.
func (a *Ark) URL() string { return a.Host() + "/api/v3" }
