package conformance

import (
	"net/http"
	"sync/atomic"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// missingID tests that a task accepted without an ID counts as lost, and after one such
// response no further calls are started.
func (p MediaProvider) missingID(t *testing.T) {
	p.each(t, func(t *testing.T, task jobcall.Task) {
		var calls atomic.Int64
		reply := document(http.StatusOK, `{"id":"","request":{},"status":null}`)
		g := p.generator(t, serve(t, func(rw http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			reply(rw, r)
		}), nil)
		if task.Kind == upstream.KindImage {
			task.Count = 8
		}
		if _, err := jobcall.Submit(t.Context(), g, task); g.Blocks(task) || err != nil && calls.Load() == 0 {
			return // the response contains the pictures, or the task was rejected before a call
		} else if f := asJobFailure(t, "missing ID", err); !f.Lost || calls.Load() > 4 { // at most 4 concurrent calls
			t.Errorf("%d calls, failure %+v; want at most 4 calls and Lost", calls.Load(), f)
		}
	})
}
