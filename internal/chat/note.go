package chat

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"tollgate/internal/ledger"
)

// progressEvery is the interval of progress reports to the ledger.
const progressEvery = 2 * time.Second

// errHoldLost ends a stream after the sweep took its hold. The rest of the stream could not be
// charged.
var errHoldLost = errors.New("this node was declared dead while it streamed")

// notes reports a stream's progress to the ledger, so that the progress is charged if this node
// dies. A timer makes the reports, not events, because the client keeps the part before a pause of
// any length. The lock protects the stream's meter while it reads and while a report is made.
type notes struct {
	sync.Mutex
	timer *time.Timer // runs from the stream's first byte on
	over  bool
	last  ledger.Progress
}

// start begins with a stream's first byte.
func (n *notes) start(x *exchange) {
	n.Lock()
	defer n.Unlock()
	if n.timer == nil && !n.over {
		n.timer = time.AfterFunc(progressEvery, x.note)
	}
}

// stop ends the notes; none is under way when it returns.
func (n *notes) stop() {
	n.Lock()
	defer n.Unlock()
	n.over = true
	if n.timer != nil {
		n.timer.Stop()
	}
}

// note reports new progress to the ledger. If the hold is lost, it cancels the stream instead.
func (x *exchange) note() {
	n := &x.stream.notes
	n.Lock()
	defer n.Unlock()
	defer func() {
		if trouble := recover(); trouble != nil { // a provider's words must not end the process
			x.opts.Log.Error("chat: a note of progress panicked", "request", x.Request, "panic", trouble, "stack", string(debug.Stack()))
		}
	}()
	switch {
	case n.over:
		return
	case x.hold.Lost():
		x.run.cancel(errHoldLost)
		return
	}
	u := x.estimated()
	cost := x.Snapshot.Cost(x.on.Line, x.Model, u, x.choice)
	if p := (ledger.Progress{Cost: cost, Tokens: tokens(u), Line: x.on.Line.ID}); p != n.last {
		n.last = p
		x.hold.Progress(p)
	}
	n.timer.Reset(progressEvery)
}
