package chat

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"tollgate/internal/ledger"
)

// progressInterval is the interval of progress reports to the ledger.
const progressInterval = 2 * time.Second

// errHoldLost ends a stream after the sweep took its hold. The rest of the stream could not be
// charged.
var errHoldLost = errors.New("this node was declared dead while it streamed")

// progressReports reports a stream's progress to the ledger, so that the progress is charged if this
// node dies. A timer triggers the reports, because the stream may pause for any length of time and
// the client has already received the part before the pause. The lock protects the stream's meter
// from reads during a report.
type progressReports struct {
	sync.Mutex
	timer   *time.Timer // runs from the stream's first byte on
	stopped bool
	last    ledger.Progress
}

// start begins with a stream's first byte.
func (n *progressReports) start(x *chatRequest) {
	n.Lock()
	defer n.Unlock()
	if n.timer == nil && !n.stopped {
		n.timer = time.AfterFunc(progressInterval, x.reportProgress)
	}
}

// stop ends the reports. No report is running when it returns.
func (n *progressReports) stop() {
	n.Lock()
	defer n.Unlock()
	n.stopped = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// reportProgress reports new progress to the ledger. If the hold is lost, it cancels the stream instead.
func (x *chatRequest) reportProgress() {
	n := &x.stream.progress
	n.Lock()
	defer n.Unlock()
	defer func() {
		if panicked := recover(); panicked != nil { // a provider's words must not end the process
			x.Log.Error("chat: a progress report panicked", "request", x.Request, "panic", panicked, "stack", string(debug.Stack()))
		}
	}()
	switch {
	case n.stopped:
		return
	case x.HoldLost():
		x.Call.Cancel(errHoldLost)
		return
	}
	u := x.estimatedUsage()
	cost := x.Snapshot.Cost(x.Target.Line, x.Model, u, x.choice)
	if p := (ledger.Progress{Cost: cost, Tokens: tokens(u), Line: x.Target.Line.ID}); p != n.last {
		n.last = p
		x.Progress(p)
	}
	n.timer.Reset(progressInterval)
}
