package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/wire/rawjson"
)

// Flow is the life of one request from its admission to its end. One goroutine owns it.
type Flow struct {
	engine    *Engine
	clientCtx context.Context // ends when the client disconnects
	w         http.ResponseWriter
	control   *http.ResponseController
	span      *trace.Span

	admission ledger.Admission
	hold      RequestHold
	ended     bool // the hold was settled or released
	calls     int  // number of calls of lines so far

	attempts *line.Attempts // nil before Route
	call     *UpstreamCall  // the last attempt's call, or nil
	reserved int64          // bytes taken from the engine's memory for answers
	// Ignored names the fields omitted by the last attempt, for IgnoredHeader.
	Ignored string

	// Started is true once the first byte of the answer was handed to the connection. FirstByte is the time
	// until then.
	Started   bool
	FirstByte time.Duration
	deadline  time.Time // the connection's write deadline
}

// NewFlow returns the flow of a request. ctx ends when the client disconnects. a identifies the caller
// and has the time of the request by the engine's clock.
func (e *Engine) NewFlow(ctx context.Context, w http.ResponseWriter, a ledger.Admission, span *trace.Span) Flow {
	f := Flow{engine: e, clientCtx: ctx, w: w, admission: a, span: span}
	if w != nil {
		f.control = http.NewResponseController(w)
	}
	return f
}

// Begin takes the hold for an admission. The caller must call End if Begin returns nil.
// The context ends with the request timeout; the caller must call cancel. If the client has
// disconnected, Begin panics to cut the connection.
func (x *Flow) Begin(a ledger.Admission) (ctx context.Context, cancel context.CancelFunc, err error) {
	x.admission = a
	step := x.span.Step("hold")
	x.hold, err = x.engine.Admit(x.clientCtx, a)
	step.End()
	if err != nil {
		if x.Disconnected() {
			panic(http.ErrAbortHandler)
		}
		return nil, nil, err
	}
	x.span.Hold(int64(a.Amount))
	timeout := x.engine.RequestTimeout
	ctx, cancel = context.WithTimeoutCause(x.clientCtx, timeout,
		fmt.Errorf("%w: no answer within the request timeout of %s: %w", ErrTimeOver, timeout, context.DeadlineExceeded))
	return ctx, cancel, nil
}

// Refuse logs a request refused before its admission, and returns err.
func (x *Flow) Refuse(err error) error {
	f := fault.Of(err)
	x.engine.LogRefused(ledger.Refusal{
		Request: x.admission.Request, Account: x.admission.Account, Key: x.admission.Key, Model: x.admission.Model,
		Endpoint: x.admission.Endpoint, Status: f.Status(), Code: string(f.Code), Received: x.admission.Received, Duration: x.Since(),
	})
	return err
}

// Disconnected reports whether the client has disconnected.
func (x *Flow) Disconnected() bool { return x.clientCtx.Err() != nil }

// ClientContext returns the context that ends when the client disconnects.
func (x *Flow) ClientContext() context.Context { return x.clientCtx }

// Since returns the time since the request arrived.
func (x *Flow) Since() time.Duration { return x.engine.Now().Sub(x.admission.Received) }

// HoldLost reports whether the sweep took the hold, because this node was declared dead.
func (x *Flow) HoldLost() bool { return x.hold.Lost() }

// IdempotencyKey returns a key for the next call of a line, unique for the attempt.
func (x *Flow) IdempotencyKey() string {
	x.calls++
	return fmt.Sprintf("%s-%d", x.admission.Request, x.calls)
}

// Route returns the attempts of the request on the lines of its model. Close closes them.
func (x *Flow) Route(ctx context.Context, r line.RoutingRequest) *line.Attempts {
	x.attempts = x.engine.Lines.Attempts(ctx, r)
	return x.attempts
}

// Reserve takes n more bytes of the engine's memory for answers, and reports whether it had them.
func (x *Flow) Reserve(n int64) bool {
	if !x.engine.Answers.Reserve(n) {
		return false
	}
	x.reserved += n
	return true
}

// CloseCall ends the last call and releases the memory of its answer.
func (x *Flow) CloseCall() {
	x.call.Close()
	x.engine.Answers.Release(x.reserved)
	x.reserved = 0
}

// Close releases all resources, also after a panic. If the request has not ended, Close releases its hold.
func (x *Flow) Close() {
	if x.attempts != nil {
		x.attempts.Close()
	}
	if x.call != nil {
		x.CloseCall()
		x.call.Span.End()
	}
	if !x.ended {
		x.Release(ledger.Failed, http.StatusServiceUnavailable, fault.ServiceUnavailable)
	}
	if !x.deadline.IsZero() {
		// A later request on the connection has its own deadline.
		_ = x.control.SetWriteDeadline(time.Time{})
	}
}

// end marks the hold as ended, and returns the fields of the receipt that do not depend on the
// usage.
func (x *Flow) end(outcome ledger.Outcome, status int, code fault.Code) ledger.End {
	x.ended = true
	x.span.Code(string(code))
	e := ledger.End{Outcome: outcome, Status: status, Code: string(code), Streamed: x.Started, FirstByte: x.FirstByte, Duration: x.Since()}
	if last := x.lastAttempt(); last != nil {
		records := x.attempts.Records()
		e.Attempts, e.Line, e.LineCost = records, x.LastLine(), line.CostOf(records)
		if x.answered() && last.Code == "" {
			last.DurationMS = x.engine.Now().Sub(x.call.Start).Milliseconds()
		}
	}
	return e
}

// lastAttempt returns the record of the last attempt, or nil.
func (x *Flow) lastAttempt() *line.AttemptRecord {
	if x.attempts == nil {
		return nil
	}
	records := x.attempts.Records()
	if len(records) == 0 {
		return nil
	}
	return &records[len(records)-1]
}

// answered reports whether the last attempt was answered.
func (x *Flow) answered() bool { return x.call != nil && x.attempts.Err() == nil }

// LastLine returns the id of the line of the last attempt. It is empty without an attempt or if
// the line was skipped.
func (x *Flow) LastLine() string {
	if last := x.lastAttempt(); last != nil && last.Skipped == "" {
		return last.Line
	}
	return ""
}

// RecordFailure records the failure of the answer in the last attempt.
func (x *Flow) RecordFailure(f *upstream.Failure) {
	if last := x.lastAttempt(); last != nil {
		last.DurationMS = x.engine.Now().Sub(x.call.Start).Milliseconds()
		last.Code, last.Cause = string(f.Code), f.Cause.Error()
	}
	x.call.Span.Fail(string(f.Code))
}

// RecordWaste records the usage of an answer begun but not delivered. It is not charged, and the
// request's own counts do not include it.
func (x *Flow) RecordWaste(m *catalog.Model, t upstream.TokenCounts) {
	if last := x.lastAttempt(); last != nil {
		last.RecordWaste(x.call.Target, m, t)
	}
}

// LogBroken logs the failure of an answer that has begun.
func (x *Flow) LogBroken(f *upstream.Failure) {
	a := &x.admission
	x.engine.Log.Info("request failed", "request", a.Request, "endpoint", a.Endpoint, "account", a.Account, "key", a.Key,
		"model", a.Model, "line", x.LastLine(), "code", string(f.Code), "cause", f.Cause, "streamed", true, x.span.Log())
}

// LostEnd returns the error for a stream whose charge failed.
func LostEnd(cause error) *fault.Error {
	return fault.New(fault.ServiceUnavailable,
		"The end of the answer was lost to a temporary problem of the service. What was produced may be charged; please try again.").WithCause(
		cause)
}

// Release ends the request without a charge.
func (x *Flow) Release(outcome ledger.Outcome, status int, code fault.Code) {
	x.hold.Release(x.end(outcome, status, code))
}

// Bill is the result of an answer for its settlement.
type Bill struct {
	// Cost is the price of the usage for the account.
	Cost money.Amount
	// Tokens, Quantity and Source are the counts for the receipt.
	Tokens   ledger.Tokens
	Quantity measure.Quantity
	Source   ledger.UsageSource
	// OwnMeasure is true if no provider reports a count, so that Source says nothing about the line.
	OwnMeasure bool
	// LineCost is the provider's charge for the answer, or nil if unknown.
	LineCost *money.Amount
	// Code is the error of an incomplete answer, or empty.
	Code fault.Code
}

// Settle ends the request with a charge. It continues after the client has disconnected; the ledger
// bounds its duration.
func (x *Flow) Settle(b Bill) error {
	if !x.Started {
		x.FirstByte = x.Since()
	}
	x.lastAttempt().LineCost = b.LineCost
	e := x.end(ledger.Billed, http.StatusOK, b.Code)
	e.Cost, e.Tokens, e.Quantity, e.Source = b.Cost, b.Tokens, b.Quantity, b.Source
	x.call.Span.Usage(b.Tokens.Prompt, b.Tokens.Cached, b.Tokens.Completion)
	step := x.span.Step("settle")
	err := x.hold.Settle(context.WithoutCancel(x.clientCtx), e)
	step.End()
	if err == nil {
		x.span.Charge(int64(min(e.Cost, x.admission.Amount)))
		if b.Source != ledger.SourceProvider && b.Code == "" && !b.OwnMeasure {
			x.call.Target.RecordGatewayCount()
		}
		x.call.Target.RecordSettlement(line.Settlement{Answered: true, Cost: e.Cost, Held: x.admission.Amount, LineCost: b.LineCost})
	} else {
		x.engine.Log.Error("an answer could not be settled", "request", x.admission.Request, "account", x.admission.Account,
			"streamed", e.Streamed, "error", err, x.span.Log())
	}
	return err
}

// SettleFirst settles an answer before its first byte is sent. The caller must return the error to
// the client. If the result of the charge is unknown, SettleFirst panics to cut the connection
// without an answer.
func (x *Flow) SettleFirst(b Bill) error {
	switch err := x.Settle(b); {
	case err == nil:
		return nil
	case errors.Is(err, ledger.ErrNotSettled):
		return fault.TryAgain(err)
	}
	panic(http.ErrAbortHandler)
}

// Fail ends a request before the first byte of an answer, and returns an error for the client. If the
// client has disconnected, Fail panics to cut the connection.
func (x *Flow) Fail(err error) error {
	if x.Disconnected() {
		x.Release(ledger.Closed, ledger.StatusClosed, fault.ClientClosed)
		panic(http.ErrAbortHandler)
	}
	f := fault.Of(err)
	f.Line = x.LastLine()
	x.Release(ledger.Failed, f.Status(), f.Code)
	x.setHeaders()
	return f
}

// SendSettled sends a whole answer after its charge. It stays charged if the client has disconnected.
func (x *Flow) SendSettled(contentType string, pieces rawjson.Pieces) {
	x.w.Header().Set("Content-Length", strconv.Itoa(pieces.Len()))
	x.WriteHead(contentType)
	for _, piece := range pieces {
		if err := x.Write(piece); err != nil {
			return
		}
	}
}

// setHeaders names the ignored fields and, if configured, the line of the last attempt in the answer's
// headers.
func (x *Flow) setHeaders() {
	if x.Ignored != "" {
		x.w.Header().Set(IgnoredHeader, x.Ignored)
	}
	if last := x.LastLine(); last != "" && x.engine.ExposeLine {
		x.w.Header().Set("x-tollgate-line", last)
	}
}

// DisableBuffering tells caches and proxies in front of the gateway to forward an answer as it arrives.
func (x *Flow) DisableBuffering() {
	h := x.w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
}

// WriteHead sends the status line, when the first byte is about to be handed to the connection.
func (x *Flow) WriteHead(contentType string) {
	x.w.Header().Set("Content-Type", contentType)
	x.setHeaders()
	if !x.Started {
		x.Started, x.FirstByte = true, x.Since()
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

// Write sends bytes to the client. It splits a long write into chunks, each with its own deadline.
func (x *Flow) Write(p []byte) error {
	start := x.engine.Now()
	for sent := 0; ; {
		if x.engine.Now().Sub(start) > writeTimeout+time.Duration(sent)*time.Second/writeRate {
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

// Flush sends the written bytes at once.
func (x *Flow) Flush() error { return x.control.Flush() }

// extend moves the write deadline for the next write, unless at least three quarters of the write
// timeout remain.
func (x *Flow) extend() {
	now := x.engine.Now()
	if x.deadline.Sub(now) > writeTimeout*3/4 {
		return
	}
	x.deadline = now.Add(writeTimeout)
	_ = x.control.SetWriteDeadline(x.deadline) // only the writers of tests have no deadlines
}
