package call

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
)

// ProgressInterval is the interval of progress reports to the ledger.
const ProgressInterval = 2 * time.Second

// errHoldLost ends a stream after the sweep took its hold. The rest of the stream could not be
// charged.
var errHoldLost = errors.New("this node was declared dead while it streamed")

// ProgressReports reports a stream's progress to the ledger, so that the progress is charged if this
// node dies. A timer triggers the reports, because the stream may pause for any length of time and
// the client has already received the part before the pause. The lock protects the counts of the
// stream from reads during a report.
type ProgressReports struct {
	sync.Mutex
	timer   *time.Timer // runs from the stream's first byte on
	stopped bool
	last    ledger.Progress
}

// Start begins with a stream's first byte. progress returns the progress so far; it is called with the
// lock held.
func (n *ProgressReports) Start(x *Flow, progress func() ledger.Progress) {
	n.Lock()
	defer n.Unlock()
	if n.timer == nil && !n.stopped {
		n.timer = time.AfterFunc(ProgressInterval, func() { n.report(x, progress) })
	}
}

// Stop ends the reports. No report is running when it returns.
func (n *ProgressReports) Stop() {
	n.Lock()
	defer n.Unlock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// report reports new progress to the ledger. If the hold is lost, it cancels the stream instead.
func (n *ProgressReports) report(x *Flow, progress func() ledger.Progress) {
	n.Lock()
	defer n.Unlock()
	defer func() {
		if panicked := recover(); panicked != nil { // a provider's data must not end the process
			x.engine.Log.Error("call: a progress report panicked", "request", x.admission.Request, "panic", panicked,
				"stack", string(debug.Stack()))
		}
	}()
	switch {
	case n.stopped:
		return
	case x.HoldLost():
		x.call.Cancel(errHoldLost)
		return
	}
	if p := progress(); p != n.last {
		n.last = p
		x.hold.Progress(p)
	}
	n.timer.Reset(ProgressInterval)
}

// Interrupted returns the failure of a stream whose call ended with f. The line is not to blame if the
// gateway ended the call.
func (x *Flow) Interrupted(f *upstream.Failure) *upstream.Failure {
	switch cause := context.Cause(x.call.Ctx); {
	case errors.Is(cause, ErrTimeOver):
		f.Health = upstream.HealthNone // the line was still answering; the request took too long
	case errors.Is(cause, errHoldLost):
		f = upstream.Fail(fault.ServiceUnavailable, errHoldLost)
		f.Health = upstream.HealthNone
	}
	return f
}
