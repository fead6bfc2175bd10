package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/translate"
)

// upstreamCall is one upstream call with its time limit.
type upstreamCall struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   io.ReadCloser
	start  time.Time
	span   *trace.Span
	closed bool
}

// limit sets a new time limit for the call. what describes the missing event in the error.
func (r *upstreamCall) limit(within time.Duration, what string) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(within, func() {
		r.cancel(fmt.Errorf("%s within %s: %w", what, within, context.DeadlineExceeded))
	})
}

// pause stops the present limit until it starts again.
func (r *upstreamCall) pause() { r.timer.Stop() }

// restart starts the present limit anew.
func (r *upstreamCall) restart(within time.Duration) { r.timer.Reset(within) }

// close ends and cancels the call at the provider. It may be called on nil and twice.
func (r *upstreamCall) close() {
	if r == nil || r.closed {
		return
	}
	r.closed = true
	r.span.EndWork()
	r.timer.Stop()
	if r.body != nil {
		_ = r.body.Close() // reading is over; there is nothing to lose
	}
	r.cancel(nil)
}

// attempt makes one upstream call and checks the beginning of its answer. It stores a good answer
// in x, and closes a failed call before it returns.
func (x *chatRequest) attempt(ctx context.Context, on *line.Attempt) (err error) {
	x.calls++
	translation := x.translation(&on.Candidate)
	ignored := x.omittedFields(&on.Candidate, translation.Omit)
	x.ignored = NamesOfFields(ignored)
	on.Ignore(len(ignored), x.ignored)
	translation.Images = x.images(ctx)
	pair := translate.New(x.Body, on.Form, x.identity(&on.Candidate))
	body, err := pair.Body(translation) // fetching images takes time; it does not count against the line
	if err != nil {
		return line.UntranslatableError{Err: err}
	}
	r := &upstreamCall{start: x.opts.Now(), span: x.traceAttempt(on)}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			r.close()
		}
		x.traceBeginning(r, err)
	}()
	times := on.Line.TimeoutsFor(x.Model)
	if x.params.Stream {
		r.limit(times.FirstToken, "no token came")
	} else {
		r.limit(times.Total, "no whole answer came")
	}
	call := chatcall.Call{
		Form: on.Form, Model: on.ProviderModel, Stream: x.params.Stream, Body: body, IdempotencyKey: fmt.Sprintf("%s-%d", x.Request, x.calls),
	}
	if on.Form == x.Form {
		call.Header = x.Header
	}
	answer, err := on.Chat(r.ctx, call)
	if err != nil {
		answer, err = x.retryWithout(r.ctx, on, pair, translation, call, err)
	}
	if err != nil {
		return x.clientFailure(on, x.markUnproven(err))
	}
	r.body = answer.Body
	x.target, x.pair, x.call = on, pair, r
	if x.params.Stream {
		x.stream, err = x.openStream(answer, times.Idle)
	} else {
		x.whole, err = x.readWhole(answer)
	}
	return x.clientFailure(on, x.markUnproven(withStatus(err)))
}

// translation returns the line's requirements in addition to the client's body.
func (x *chatRequest) translation(on *line.Candidate) wire.Translation {
	_, limit := x.Model.OutputLimit(x.params.Limit)
	var noThinking wire.Member
	if member := on.Line.Host().NoThinking(); x.Model.Reasoning && !on.RefusesField(member.Name) {
		noThinking = member
	}
	return wire.Translation{
		Edits: wire.Edits{Model: on.ProviderModel, Limit: limit, LimitField: x.limitField(on), AskUsage: true,
			SystemOnly: on.Line.Host().LacksDeveloperRole(on.ProviderModel), Efforts: x.Model.Efforts, NoThinking: noThinking,
			Omit: on.Line.DroppedFields(x.params.Extra)},
		MaxOutput: x.Model.MaxOutputTokens, Reasoning: x.Model.Reasoning, OpenAI: on.Line.Host().AcceptsBothLimits(),
		NoEncrypted: on.RefusesField(includeField), NoSummary: on.RefusesField(summaryField),
	}
}

// longPrompt is the size in bytes of a prompt that may delay a good line's first token. Images and
// files may delay it at any size.
const longPrompt = 64 << 10

// markUnproven marks a timeout as unproven if the request may need so much time: the client
// controls the length of a whole answer and the size of a prompt.
func (x *chatRequest) markUnproven(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) && f.Code == fault.UpstreamTimeout && (!x.params.Stream || x.hasLongPrompt()) {
		f.Unproven = true
	}
	return err
}

// hasLongPrompt reports whether a good line may need long to read the prompt.
func (x *chatRequest) hasLongPrompt() bool {
	b := x.params.Bound
	return b.TextBytes > longPrompt || b.Images > 0 || b.Unbounded
}

// withStatus sets status 200 on a failure after the head of an answer.
func withStatus(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) && f.Status == 0 {
		f.Status = 200
	}
	return err
}

// reported returns the failure for an error reported by a provider inside an answer or a frame.
func reported(on *line.Attempt, e *wire.ProviderError) *upstream.Failure {
	if e.Body != nil {
		if f := on.Source().Classify(200, "application/json", e.Body, nil); f != nil {
			return f
		}
	}
	return upstream.Fail(fault.UpstreamUnavailable, e)
}

// malformed returns the failure for an answer or event of invalid JSON.
func malformed(contentType string, data []byte, err error) *upstream.Failure {
	if f := upstream.Classify(200, contentType, data, nil); f != nil {
		return f
	}
	return upstream.Fail(fault.UpstreamUnavailable, err)
}
