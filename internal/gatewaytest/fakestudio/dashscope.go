package fakestudio

import "testing"

// DashScope is a fake of Alibaba Cloud's model service: pictures in the answer
// or as tasks, clips as tasks.
type DashScope struct{ Studio }

// NewDashScope starts one. It ends with the test.
func NewDashScope(t testing.TB) *DashScope {
	d := &DashScope{}
	d.open(t, d.strange)
	return d
}

// URL is a line's base_url for it.
func (d *DashScope) URL() string { return d.Host() + "/api/v1" }
