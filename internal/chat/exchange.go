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

// exchange is the state of one request. One goroutine owns it.
type exchange struct {
	*Conductor
	AcceptedRequest
	asked   *wire.Parameters
	client  context.Context // ends when the client leaves
	w       http.ResponseWriter
	control *http.ResponseController
	choice  catalog.Choice
	routing []string // fields only for lines with pass-through of these fields
	ignored string   // fields omitted by the last attempt

	admitted ledger.Admission
	hold     hold
	ended    bool // the hold was settled or released
	attempts []line.AttemptRecord
	tried    int
	traced   *trace.Span                  // of the last attempt
	named    bool                         // the model of the answer is recorded in traced
	finishes []string                     // the finish reasons recorded in traced, by choice index
	fetched  map[string]wire.FetchedImage // by address

	// Set by the good attempt. Either whole or stream is set.
	on     *line.Attempt
	pair   wire.Pair
	run    *run
	whole  *whole
	stream *stream
	room   int64 // bytes reserved from the budget for the stream

	source    ledger.UsageSource // of the last result of usage
	begun     bool               // the first byte of the answer was handed to the connection
	firstByte time.Duration
	deadline  time.Time // of writes
}

// gone reports whether the client has disconnected.
func (x *exchange) gone() bool { return x.client.Err() != nil }

// since returns the time since the request arrived.
func (x *exchange) since() time.Duration { return x.opts.Now().Sub(x.Received) }

// close releases all resources, also after a panic.
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

// giveBack returns the stream's bytes to the budget.
func (x *exchange) giveBack() {
	x.budget.give(x.room)
	x.room = 0
}

// end returns the receipt's common fields of all ends.
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

// lastLine returns the line of the last attempt, or empty without an attempt.
func (x *exchange) lastLine() string {
	if n := len(x.attempts); n > 0 && x.attempts[n-1].Skipped == "" {
		return x.attempts[n-1].Line
	}
	return ""
}

// blame records the failure of the last attempt's answer.
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

// settleFirst settles an answer before its first byte is sent. The caller returns its error to the
// client. If the result of the charge is unknown, it cuts the connection without an answer.
func (x *exchange) settleFirst(u wire.Usage) error {
	switch err := x.settle(u, ""); {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNotSettled):
		return fault.TryAgain(err)
	}
	panic(http.ErrAbortHandler)
}

// fail ends a request before the first byte of an answer, with an error for the client.
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

// expose names the ignored fields and, if configured, the line of the last attempt in the answer's
// headers.
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

// A client must accept each share of a write within the write timeout, and the whole write at a
// minimum rate, because an answer occupies shared memory.
const (
	writeShare = 256 << 10
	writeRate  = 32 << 10 // bytes a second, after the time for one write
)

// write sends bytes to the client. It splits long writes into shares, each with its own deadline.
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

// identity returns the source of the answer for the client.
func (x *exchange) identity(on *line.Candidate) wire.Identity {
	return wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix(), Origin: on.Line.Origin()}
}
