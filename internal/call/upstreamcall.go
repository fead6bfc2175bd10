package call

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tollgate/internal/bounded"
	"tollgate/internal/fault"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
)

// UpstreamCall is one upstream call with its time limit. One goroutine owns it.
type UpstreamCall struct {
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

// OpenCall returns a call that starts now. The caller must call Limit, and Close in the end.
func OpenCall(ctx context.Context, now time.Time, span *trace.Span) *UpstreamCall {
	r := &UpstreamCall{Start: now, Span: span}
	r.Ctx, r.Cancel = context.WithCancelCause(ctx)
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

// Pause stops the present limit until it starts again.
func (r *UpstreamCall) Pause() { r.timer.Stop() }

// Restart starts the present limit anew.
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

// WholeBody is the body of a whole answer.
type WholeBody struct {
	Raw      []byte
	reserved int64 // bytes taken from the budget
}

// ReadBody reads an answer of up to MaxAnswer bytes. length is its announced length, or 0. It reserves
// the bytes beyond UnbudgetedBytes from the budget. The caller must release the body, even if ReadBody
// returns an error. advice ends the message about a longer answer.
func (e *Engine) ReadBody(ctx context.Context, from io.Reader, length int64, advice string) (w WholeBody, err error) {
	longest := e.MaxAnswer
	if length == 0 {
		length = -1
	}
	var size int64
	var full bool
	w.Raw, err = bounded.Read(io.LimitReader(from, longest+1), min(length, longest), longest, func(n int64) error {
		size += n
		more := max(0, size-UnbudgetedBytes) - w.reserved
		if full = !e.Answers.Reserve(more); full {
			return errNoMemory
		}
		w.reserved += more
		return nil
	})
	switch {
	case full:
		return w, OutOfMemory()
	case err != nil:
		return w, upstream.ConnectionFailure(ctx, err)
	case int64(len(w.Raw)) > longest:
		// The failure is final: the line is not at fault, and another line's answer would be as long.
		return w, fault.New(fault.UpstreamUnavailable,
			"The answer is longer than the %s that may come in one piece. You were not charged; please %s.", fault.Bytes(longest), advice).
			WithCause(errors.New("the answer is longer than max_answer"))
	}
	return w, nil
}

// ReleaseBody returns the memory of a body to the budget.
func (e *Engine) ReleaseBody(w *WholeBody) {
	e.Answers.Release(w.reserved)
	w.reserved = 0
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
