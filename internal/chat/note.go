package chat

import (
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"tollgate/internal/ledger"
)

// progressEvery is how often the ledger is told what was produced.
const progressEvery = 2 * time.Second

// errHoldLost ends a stream whose hold is a sweep's: nothing that it brings from
// then on can be charged.
var errHoldLost = errors.New("this node was declared dead while it streamed")

// notes tell the ledger what a stream has brought, so that it is charged if this
// node dies. They are made by the clock, not by events: a client has what came
// before a pause, however long that is. The lock is held by whoever changes what
// the stream's meter has read, and while it is noted.
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

// note tells the ledger what was produced so far, if that is news. A stream whose
// hold is lost is cut off instead.
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
