package commit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"tollgate/internal/ledger/books"
)

// Op is an operation in the queue. A field's comment names the kinds of operations that use the field.
type Op struct {
	Done   chan struct{} // closed when answered; nil if there is no caller
	Err    error         // read after Done, like Hold and Logged
	Hold   *OpenHold     // opAdmit
	Logged bool          // opAdmit: a refusal needs no row in the request log, or has one
	Answer Refusal       // opAdmit: the answer for a caller after Abandon

	kind         opKind
	account, key string

	admission books.Admission // opAdmit
	hold      *OpenHold       // opEnd and opProgress
	holdID    string          // opEnd, opSweep and opJob
	epoch     string          // opEnd and opSweep: the epoch of the hold
	end       books.End       // opEnd
	attempts  string          // opEnd, as JSON
	refusal   Refusal         // opRefused
	admitHook AdmissionHook   // opAdmit of a job
	endHook   EndHook         // opJob

	passes int // how often a batch has passed over the operation; only the committer uses it
	state  atomic.Int32
	ended  bool // opJob: the job has ended; read after Done
}

type opKind int

const (
	opAdmit opKind = iota
	opEnd
	opSweep
	opProgress
	opRefused
	opJob
	opConfirm // changes nothing; its commit proves that all data visible before it is durable
)

// States of an operation. Its caller moves it from waiting to left, or from taken to abandoned. The
// committer moves it from waiting to taken, and from taken to answered.
const (
	opWaiting int32 = iota
	opTaken
	opLeft      // the caller stopped waiting before a batch took the operation: the operation never runs
	opAbandoned // the caller stopped waiting after a batch took the operation: an admission is undone
	opAnswered
)

// Withdraw cancels an operation unless a batch has taken it, and reports whether it was canceled. A
// canceled operation never runs.
func (o *Op) Withdraw() bool { return o.state.CompareAndSwap(opWaiting, opLeft) }

// Abandon ends the caller's wait for an operation that a batch has taken. It returns false if the
// operation was already answered or no batch has taken it. After true, the committer undoes an
// admission and logs Answer. It charges a settlement of a whole answer only if the batch is already
// decided.
func (o *Op) Abandon() bool { return o.state.CompareAndSwap(opTaken, opAbandoned) }

// OpenHold is the hold of a running chat request of this node.
type OpenHold struct {
	Row      *books.HoldRow
	progress atomic.Pointer[books.Progress] // the newest; the next batch writes it
	queued   atomic.Bool                    // an opProgress of this hold is in the queue
}

// Admit queues an admission. hook is nil for a chat request. Admit returns nil after Close.
func (c *Committer) Admit(a books.Admission, hook AdmissionHook) *Op {
	o := &Op{kind: opAdmit, account: a.Account, key: a.Key, admission: a, admitHook: hook, Done: make(chan struct{})}
	if !c.queue.push(o) {
		return nil
	}
	return o
}

// End queues the end of a chat request.
func (c *Committer) End(h *OpenHold, e books.End) *Op {
	o := &Op{
		kind: opEnd, account: h.Row.Account, key: h.Row.Key,
		hold: h, holdID: h.Row.ID, epoch: h.Row.Epoch, end: e, attempts: attemptsJSON(e.Attempts), Done: make(chan struct{}),
	}
	c.queue.push(o)
	return o
}

// Progress records the output of a running stream. It does not wait: the next batch writes the newest
// value.
func (c *Committer) Progress(h *OpenHold, p books.Progress) {
	h.progress.Store(&p)
	if !h.queued.Swap(true) {
		c.queue.push(&Op{kind: opProgress, account: h.Row.Account, hold: h})
	}
}

// wait queues an operation and waits for its answer.
func (c *Committer) wait(ctx context.Context, o *Op, what string) error {
	c.queue.push(o)
	select {
	case <-o.Done:
		return o.Err
	case <-c.stopped:
		return errors.New("the ledger is closed")
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

// String names an operation in the log.
func (o *Op) String() string {
	switch o.kind {
	case opAdmit:
		return "admit " + o.admission.Request
	case opEnd:
		return "settle " + o.holdID
	case opSweep:
		return "sweep " + o.holdID
	case opJob:
		return "end of the job of " + o.holdID
	case opProgress:
		return "progress " + o.hold.Row.ID
	case opConfirm:
		return "confirm"
	default:
		return "log refusal " + o.refusal.Request
	}
}

// attemptsJSON encodes the trace of the attempts, or returns an empty trace if the encoding fails:
// a receipt must not fail because of its trace.
func attemptsJSON(v any) string {
	if v == nil {
		return "[]"
	}
	raw, err := json.Marshal(v)
	if err != nil || string(raw) == "null" {
		return "[]"
	}
	return string(raw)
}
