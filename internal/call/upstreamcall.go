package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tollgate/internal/bounded"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/wire/kind"
)

// UpstreamCall is one attempt's call of a line, with its time limit. One goroutine owns it.
type UpstreamCall struct {
	// Target is the attempt on the line.
	Target *line.Attempt
	// Ctx bounds the call. Cancel ends it with a cause.
	Ctx    context.Context
	Cancel context.CancelCauseFunc
	// Body is the answer's body; nil before the answer.
	Body  io.ReadCloser
	Start time.Time
	Span  *trace.Span

	timer  *time.Timer
	closed bool
}

// OpenCall begins the call of an attempt, and its span. operation is for the span. The caller must call
// Limit, and Close in the end.
func (x *Flow) OpenCall(ctx context.Context, on *line.Attempt, operation trace.Operation, stream bool) *UpstreamCall {
	r := &UpstreamCall{Target: on, Start: x.engine.Now(), Span: x.span.Attempt(trace.AttemptStart{
		Operation: operation, Line: on.Line.ID, Provider: on.Line.Provider, BaseURL: on.Line.BaseURL, Model: on.ProviderModel, Stream: stream,
	})}
	r.Ctx, r.Cancel = context.WithCancelCause(ctx)
	x.call = r
	return r
}

// Limit sets a new time limit for the call. what describes the missing event in the error.
func (r *UpstreamCall) Limit(within time.Duration, what string) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(within, func() {
		r.Cancel(fmt.Errorf("%s within %s: %w", what, within, context.DeadlineExceeded))
	})
}

// Pause stops the time limit until Restart.
func (r *UpstreamCall) Pause() { r.timer.Stop() }

// Restart starts the time limit again, with a new duration.
func (r *UpstreamCall) Restart(within time.Duration) { r.timer.Reset(within) }

// Close ends and cancels the call at the provider. It may be called on nil and twice.
func (r *UpstreamCall) Close() {
	if r == nil || r.closed {
		return
	}
	r.closed = true
	r.Span.EndWork()
	r.timer.Stop()
	if r.Body != nil {
		_ = r.Body.Close() // reading is over; there is nothing to lose
	}
	r.Cancel(nil)
}

// ReadBody reads a whole answer of up to MaxAnswer bytes. length is its announced length, or 0. It
// reserves the bytes beyond UnbudgetedBytes. advice ends the message about a longer answer.
func (x *Flow) ReadBody(from io.Reader, length int64, advice string) ([]byte, error) {
	longest := x.engine.MaxAnswer
	if length == 0 {
		length = -1
	}
	var size, reserved int64
	var full bool
	body, err := bounded.Read(io.LimitReader(from, longest+1), min(length, longest), longest, func(n int64) error {
		size += n
		more := max(0, size-UnbudgetedBytes) - reserved
		if full = !x.Reserve(more); full {
			return kind.ErrNoMemory
		}
		reserved += more
		return nil
	})
	switch {
	case full:
		return nil, upstream.OutOfMemory()
	case err != nil:
		return nil, upstream.ConnectionFailure(x.call.Ctx, err)
	case int64(len(body)) > longest:
		// The failure is final: the line is not at fault, and another line's answer would be as long.
		return nil, fault.New(fault.UpstreamUnavailable,
			"The answer is longer than the %s that may come in one piece. You were not charged; please %s.", fault.Bytes(longest), advice).
			WithCause(errors.New("the answer is longer than max_answer"))
	}
	return body, nil
}

// WithStatus sets status 200 on a failure after the head of an answer.
func WithStatus(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) && f.Status == 0 {
		f.Status = 200
	}
	return err
}

// Malformed returns the failure for an answer or event that is not the expected JSON.
func Malformed(contentType string, data []byte, err error) *upstream.Failure {
	if f := upstream.Classify(200, contentType, data, nil); f != nil {
		return f
	}
	return upstream.Fail(fault.UpstreamUnavailable, err)
}

// TraceFailure ends the span of a failed attempt.
func TraceFailure(span *trace.Span, err error) {
	code := fault.UpstreamError
	var f *upstream.Failure
	if errors.As(err, &f) {
		code = f.Code
		span.Status(f.Status)
	}
	span.Fail(string(code))
	span.End()
}
