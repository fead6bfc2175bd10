package conformance

import (
	"net/http"
	"sync/atomic"
	"testing"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
)

// nameless tests that a task accepted without an ID is lost, and of several calls only those
// already running finish.
func (p MediaProvider) nameless(t *testing.T) {
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
			return // its answer holds the pictures, or it has no such count
		} else if f := failedJob(t, "nameless", err); !f.Lost || calls.Load() > 4 { // 4 calls at once
			t.Errorf("%d calls, %+v", calls.Load(), f)
		}
	})
}
