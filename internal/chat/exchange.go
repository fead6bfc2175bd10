package chat

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// exchange is one request on its way. One goroutine owns it.
type exchange struct {
	*Conductor
	AcceptedRequest
	asked   *wire.Asked
	client  context.Context // ends when the client leaves
	w       http.ResponseWriter
	control *http.ResponseController
	choice  catalog.Choice
	routing []string // fields that only lines may get which pass them
	ignored string   // fields that the last attempt left out

	admitted ledger.Admission
	hold     hold
	ended    bool // the hold was settled or released
	attempts []line.AttemptRecord
	tried    int
	traced   *trace.Span                  // of the last attempt
	named    bool                         // traced knows which model answers
	finishes []string                     // what traced knows of why choices ended, by their index
	fetched  map[string]wire.FetchedImage // by address

	// What the good attempt left. One of whole and stream is set.
	on     *line.Attempt
	pair   wire.Pair
	run    *run
	whole  *whole
	stream *stream
	room   int64 // bytes that its stream has from the budget

	source    ledger.UsageSource // whose counts the usage is of that was asked for last
	begun     bool               // the first byte of the answer was handed to the connection
	firstByte time.Duration
	deadline  time.Time // of writes
}

// gone tells whether the client has left.
func (x *exchange) gone() bool { return x.client.Err() != nil }

// since is how long the request has been running.
func (x *exchange) since() time.Duration { return x.opts.Now().Sub(x.Received) }

// close lets go of everything that is still held, also after a panic.
func (x *exchange) close() {
	x.run.close()
	if x.whole != nil {
		x.budget.give(x.whole.reserved)
	}
	x.giveBack()
	x.traced.End()
	if !x.ended {
		x.release(ledger.Failed, http.StatusServiceUnavailable, fault.ServiceUnavailable)
	}
	if !x.deadline.IsZero() {
		// A later request on the connection has its own time.
		_ = x.control.SetWriteDeadline(time.Time{})
	}
}

// reserve takes n more bytes from the budget for the stream; false when they do
// not fit.
func (x *exchange) reserve(n int64) bool {
	if !x.budget.take(n) {
		return false
	}
	x.room += n
	return true
}

// giveBack returns what the stream has from the budget.
func (x *exchange) giveBack() {
	x.budget.give(x.room)
	x.room = 0
}

// end fills in the receipt's facts that are the same for every end.
func (x *exchange) end(outcome ledger.Outcome, status int, code fault.Code) ledger.End {
	x.ended = true
	x.Span.Code(string(code))
	e := ledger.End{Outcome: outcome, Status: status, Code: string(code), Streamed: x.begun, FirstByte: x.firstByte, Duration: x.since()}
	if n := len(x.attempts); n > 0 {
		last := &x.attempts[n-1]
		e.Attempts, e.Line, e.LineCost = x.attempts, x.lastLine(), line.CostOf(x.attempts)
		if x.run != nil && last.Code == "" {
			last.DurationMS = x.opts.Now().Sub(x.run.began).Milliseconds()
		}
	}
	return e
}

// lastLine is the line that was asked last; empty: none was.
func (x *exchange) lastLine() string {
	if n := len(x.attempts); n > 0 && x.attempts[n-1].Skipped == "" {
		return x.attempts[n-1].Line
	}
	return ""
}

// blame notes why the answer of the last attempt broke off.
func (x *exchange) blame(f *upstream.Failure) {
	if n := len(x.attempts); n > 0 {
		last := &x.attempts[n-1]
		last.DurationMS = x.opts.Now().Sub(x.run.began).Milliseconds()
		last.Code, last.Cause = string(f.Code), f.Cause.Error()
	}
	x.traced.Fail(string(f.Code))
}

// release ends the request without a charge.
func (x *exchange) release(outcome ledger.Outcome, status int, code fault.Code) {
	x.hold.Release(x.end(outcome, status, code))
}

// settle ends the request with the charge for a usage. It does not end with
// the client: the ledger bounds it.
func (x *exchange) settle(u wire.Usage, code fault.Code) error {
	if !x.begun {
		x.firstByte = x.since()
	}
	if x.opts.UnknownUsage != nil {
		for _, member := range u.Unknown {
			x.opts.UnknownUsage(x.on.Line.ID, member)
		}
	}
	last := &x.attempts[len(x.attempts)-1]
	last.LineCost = x.on.CostOf(x.Snapshot, x.Model, u, x.choice)
	e := x.end(ledger.Billed, http.StatusOK, code)
	e.Cost, e.Tokens, e.Source = x.Snapshot.Cost(x.on.Line, x.Model, u, x.choice), tokens(u), x.source
	x.traced.Usage(u.Prompt, u.Cached, u.Completion)
	step := x.Span.Step("settle")
	err := x.hold.Settle(context.WithoutCancel(x.client), e)
	step.End()
	if err == nil {
		x.Span.Charged(int64(min(e.Cost, x.admitted.Amount)))
		x.on.Settled(line.Settlement{Answered: true, Cost: e.Cost, Held: x.admitted.Amount, LineCost: last.LineCost})
	} else {
		x.opts.Log.Error("chat: an answer could not be settled", "request", x.Request, "account", x.Account, "streamed", e.Streamed, "error", err,
			x.Span.Log())
	}
	return err
}

// settleFirst settles an answer of which the client has seen nothing. Its
// error is for the door; when nobody knows what became of the charge, the
// connection is cut without an answer.
func (x *exchange) settleFirst(u wire.Usage) error {
	switch err := x.settle(u, ""); {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNotSettled):
		return fault.TryAgain(err)
	}
	panic(http.ErrAbortHandler)
}

// fail ends a request of which the client has seen nothing with an error for
// the door.
func (x *exchange) fail(err error) error {
	if x.gone() {
		x.release(ledger.Closed, ledger.StatusClosed, fault.ClientClosed)
		panic(http.ErrAbortHandler)
	}
	f := fault.Of(err)
	f.Line = x.lastLine()
	x.release(ledger.Failed, f.Status(), f.Code)
	x.expose()
	return f
}

// expose names the fields that the answer does not heed and, for the operator, the
// line that was asked last.
func (x *exchange) expose() {
	if x.ignored != "" {
		x.w.Header().Set(IgnoredHeader, x.ignored)
	}
	if last := x.lastLine(); last != "" && x.opts.ExposeLine {
		x.w.Header().Set("x-tollgate-line", last)
	}
}

// begin sends the status line. It is called when the first byte is about to be
// handed to the connection.
func (x *exchange) begin(contentType string) {
	x.w.Header().Set("Content-Type", contentType)
	x.expose()
	if !x.begun {
		x.begun, x.firstByte = true, x.since()
		if x.stream != nil && x.opts.FirstToken != nil {
			x.opts.FirstToken(x.Model.ID, x.firstByte)
		}
	}
	x.extend()
	x.w.WriteHeader(http.StatusOK)
}

// A client has to take a share of what is written within the time for a write, and all of
// it at a rate: an answer's memory is the node's, and not its own.
const (
	writeShare = 256 << 10
	writeRate  = 32 << 10 // bytes a second, after the time for one write
)

// write hands bytes to the connection: what is longer than a share in shares, each with
// its own time, as it is for other answers.
func (x *exchange) write(p []byte) error {
	began := x.opts.Now()
	for sent := 0; ; {
		if x.opts.Now().Sub(began) > x.opts.WriteTimeout+time.Duration(sent)*time.Second/writeRate {
			return os.ErrDeadlineExceeded
		}
		share := p[sent:min(len(p), sent+writeShare)]
		x.extend()
		n, err := x.w.Write(share)
		if sent += n; err != nil || sent == len(p) {
			return err
		}
	}
}

// extend gives the client time for the next write. The deadline is moved only
// when a good part of it has passed.
func (x *exchange) extend() {
	now := x.opts.Now()
	if x.deadline.Sub(now) > x.opts.WriteTimeout*3/4 {
		return
	}
	x.deadline = now.Add(x.opts.WriteTimeout)
	_ = x.control.SetWriteDeadline(x.deadline) // writers without deadlines are tests
}

// identity is what the client sees as the source of its answer.
func (x *exchange) identity(on *line.Candidate) wire.Identity {
	return wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix(), Origin: on.Line.Origin()}
}
