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

// chatRequest is the state of one request. One goroutine owns it.
type chatRequest struct {
	*Conductor
	AcceptedRequest
	params    *wire.Parameters
	clientCtx context.Context // ends when the client disconnects
	w         http.ResponseWriter
	control   *http.ResponseController
	choice    catalog.Pricing
	routing   []string // fields only for lines with pass-through of these fields
	ignored   string   // fields omitted by the last attempt

	admission   ledger.Admission
	hold        hold
	ended       bool // the hold was settled or released
	attempts    []line.AttemptRecord
	calls       int                          // number of calls of lines so far
	attemptSpan *trace.Span                  // of the last attempt
	modelTraced bool                         // the model of the answer is recorded in traced
	finishes    []string                     // the finish reasons recorded in traced, by choice index
	fetched     map[string]wire.FetchedImage // by address

	// Set by the good attempt. Either whole or stream is set.
	target   *line.Attempt
	pair     wire.Pair
	call     *upstreamCall
	whole    *wholeAnswer
	stream   *stream
	reserved int64 // bytes reserved from the budget for the stream

	source    ledger.UsageSource // where the counts in the last result of usage come from
	started   bool               // the first byte of the answer was handed to the connection
	firstByte time.Duration
	deadline  time.Time // the connection's write deadline
}

// disconnected reports whether the client has disconnected.
func (x *chatRequest) disconnected() bool { return x.clientCtx.Err() != nil }

// since returns the time since the request arrived.
func (x *chatRequest) since() time.Duration { return x.opts.Now().Sub(x.Received) }

// close releases all resources, also after a panic.
func (x *chatRequest) close() {
	x.call.close()
	if x.whole != nil {
		x.budget.release(x.whole.reserved)
	}
	x.releaseMemory()
	x.attemptSpan.End()
	if !x.ended {
		x.release(ledger.Failed, http.StatusServiceUnavailable, fault.ServiceUnavailable)
	}
	if !x.deadline.IsZero() {
		// A later request on the connection has its own deadline.
		_ = x.control.SetWriteDeadline(time.Time{})
	}
}

// reserve takes n more bytes from the budget for the stream, and reports whether the budget had
// them.
func (x *chatRequest) reserve(n int64) bool {
	if !x.budget.reserve(n) {
		return false
	}
	x.reserved += n
	return true
}

// releaseMemory returns the stream's bytes to the budget.
func (x *chatRequest) releaseMemory() {
	x.budget.release(x.reserved)
	x.reserved = 0
}

// end marks the hold as ended, and returns the fields of the receipt that do not depend on the
// usage.
func (x *chatRequest) end(outcome ledger.Outcome, status int, code fault.Code) ledger.End {
	x.ended = true
	x.Span.Code(string(code))
	e := ledger.End{Outcome: outcome, Status: status, Code: string(code), Streamed: x.started, FirstByte: x.firstByte, Duration: x.since()}
	if n := len(x.attempts); n > 0 {
		last := &x.attempts[n-1]
		e.Attempts, e.Line, e.LineCost = x.attempts, x.lastLine(), line.CostOf(x.attempts)
		if x.call != nil && last.Code == "" {
			last.DurationMS = x.opts.Now().Sub(x.call.start).Milliseconds()
		}
	}
	return e
}

// lastLine returns the id of the line of the last attempt. It is empty without an attempt or if
// the line was skipped.
func (x *chatRequest) lastLine() string {
	if n := len(x.attempts); n > 0 && x.attempts[n-1].Skipped == "" {
		return x.attempts[n-1].Line
	}
	return ""
}

// recordFailure records the failure of the answer in the last attempt.
func (x *chatRequest) recordFailure(f *upstream.Failure) {
	if n := len(x.attempts); n > 0 {
		last := &x.attempts[n-1]
		last.DurationMS = x.opts.Now().Sub(x.call.start).Milliseconds()
		last.Code, last.Cause = string(f.Code), f.Cause.Error()
	}
	x.attemptSpan.Fail(string(f.Code))
}

// release ends the request without a charge.
func (x *chatRequest) release(outcome ledger.Outcome, status int, code fault.Code) {
	x.hold.Release(x.end(outcome, status, code))
}

// settle ends the request with the charge for u. It continues after the client has disconnected;
// the ledger bounds its duration.
func (x *chatRequest) settle(u wire.Usage, code fault.Code) error {
	if !x.started {
		x.firstByte = x.since()
	}
	if x.opts.UnknownUsage != nil {
		for _, member := range u.Unknown {
			x.opts.UnknownUsage(x.target.Line.ID, member)
		}
	}
	last := &x.attempts[len(x.attempts)-1]
	last.LineCost = x.target.CostOf(x.Snapshot, x.Model, u, x.choice)
	e := x.end(ledger.Billed, http.StatusOK, code)
	e.Cost, e.Tokens, e.Source = x.Snapshot.Cost(x.target.Line, x.Model, u, x.choice), tokens(u), x.source
	x.attemptSpan.Usage(u.Prompt, u.Cached, u.Completion)
	step := x.Span.Step("settle")
	err := x.hold.Settle(context.WithoutCancel(x.clientCtx), e)
	step.End()
	if err == nil {
		x.Span.Charge(int64(min(e.Cost, x.admission.Amount)))
		x.target.RecordSettlement(line.Settlement{Answered: true, Cost: e.Cost, Held: x.admission.Amount, LineCost: last.LineCost})
	} else {
		x.opts.Log.Error("chat: an answer could not be settled", "request", x.Request, "account", x.Account, "streamed", e.Streamed, "error", err,
			x.Span.Log())
	}
	return err
}

// settleFirst settles an answer before its first byte is sent. The caller must return the error to
// the client. If the result of the charge is unknown, settleFirst panics to cut the connection
// without an answer.
func (x *chatRequest) settleFirst(u wire.Usage) error {
	switch err := x.settle(u, ""); {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNotSettled):
		return fault.TryAgain(err)
	}
	panic(http.ErrAbortHandler)
}

// fail ends a request before the first byte of an answer, with an error for the client.
func (x *chatRequest) fail(err error) error {
	if x.disconnected() {
		x.release(ledger.Closed, ledger.StatusClosed, fault.ClientClosed)
		panic(http.ErrAbortHandler)
	}
	f := fault.Of(err)
	f.Line = x.lastLine()
	x.release(ledger.Failed, f.Status(), f.Code)
	x.setHeaders()
	return f
}

// setHeaders names the ignored fields and, if configured, the line of the last attempt in the answer's
// headers.
func (x *chatRequest) setHeaders() {
	if x.ignored != "" {
		x.w.Header().Set(IgnoredHeader, x.ignored)
	}
	if last := x.lastLine(); last != "" && x.opts.ExposeLine {
		x.w.Header().Set("x-tollgate-line", last)
	}
}

// begin sends the status line, when the first byte is about to be handed to the connection.
func (x *chatRequest) begin(contentType string) {
	x.w.Header().Set("Content-Type", contentType)
	x.setHeaders()
	if !x.started {
		x.started, x.firstByte = true, x.since()
		if x.stream != nil && x.opts.FirstToken != nil {
			x.opts.FirstToken(x.Model.ID, x.firstByte)
		}
	}
	x.extend()
	x.w.WriteHeader(http.StatusOK)
}

// A client must accept each chunk of a write within the write timeout, and the whole write at a
// minimum rate, because an answer occupies shared memory.
const (
	writeTimeout = 30 * time.Second
	writeChunk   = 256 << 10
	writeRate    = 32 << 10 // bytes a second, in addition to one write timeout
)

// write sends bytes to the client. It splits a long write into chunks, each with its own deadline.
func (x *chatRequest) write(p []byte) error {
	start := x.opts.Now()
	for sent := 0; ; {
		if x.opts.Now().Sub(start) > writeTimeout+time.Duration(sent)*time.Second/writeRate {
			return os.ErrDeadlineExceeded
		}
		chunk := p[sent:min(len(p), sent+writeChunk)]
		x.extend()
		n, err := x.w.Write(chunk)
		if sent += n; err != nil || sent == len(p) {
			return err
		}
	}
}

// extend moves the write deadline for the next write, unless at least three quarters of the write
// timeout remain.
func (x *chatRequest) extend() {
	now := x.opts.Now()
	if x.deadline.Sub(now) > writeTimeout*3/4 {
		return
	}
	x.deadline = now.Add(writeTimeout)
	_ = x.control.SetWriteDeadline(x.deadline) // only the writers of tests have no deadlines
}

// identity returns the answer's id, model, time and origin.
func (x *chatRequest) identity(on *line.Candidate) wire.Identity {
	return wire.Identity{Request: x.Request, Model: x.Model.ID, Created: x.Received.Unix(), Origin: on.Line.Origin()}
}
