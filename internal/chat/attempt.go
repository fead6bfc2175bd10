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

// run is one upstream call with its time limit.
type run struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	body   io.ReadCloser
	began  time.Time
	span   *trace.Span
	over   bool
}

// limit sets a new time limit for the call. what describes the missing event in the error.
func (r *run) limit(within time.Duration, what string) {
	if r.timer != nil {
		r.timer.Stop()
	}
	r.timer = time.AfterFunc(within, func() {
		r.cancel(fmt.Errorf("%s within %s: %w", what, within, context.DeadlineExceeded))
	})
}

// pause stops the present limit until it starts again.
func (r *run) pause() { r.timer.Stop() }

// again starts the present limit anew.
func (r *run) again(within time.Duration) { r.timer.Reset(within) }

// close ends and cancels the call at the provider. It may be called on nil and twice.
func (r *run) close() {
	if r == nil || r.over {
		return
	}
	r.over = true
	r.span.Over()
	r.timer.Stop()
	if r.body != nil {
		_ = r.body.Close() // reading is over; there is nothing to lose
	}
	r.cancel(nil)
}

// attempt makes one upstream call and checks the beginning of its answer. It stores a good answer
// in x, and closes a failed call before it returns.
func (x *exchange) attempt(ctx context.Context, on *line.Attempt) (err error) {
	x.tried++
	translation := x.translation(&on.Candidate)
	ignored := x.leftOut(&on.Candidate, translation.Omit)
	x.ignored = NamesOfFields(ignored)
	on.Ignore(len(ignored), x.ignored)
	translation.Images = x.images(ctx)
	pair := translate.New(x.Body, on.Form, x.identity(&on.Candidate))
	body, err := pair.Body(translation) // fetching images takes time; it does not count against the line
	if err != nil {
		return line.Untranslatable{Err: err}
	}
	r := &run{began: x.opts.Now(), span: x.traceAttempt(on)}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			r.close()
		}
		x.traceBeginning(r, err)
	}()
	times := on.Line.Times(x.Model)
	if x.asked.Stream {
		r.limit(times.FirstToken, "no token came")
	} else {
		r.limit(times.Total, "no whole answer came")
	}
	call := chatcall.Call{
		Form: on.Form, Model: on.ProviderModel, Stream: x.asked.Stream, Body: body, IdempotencyKey: fmt.Sprintf("%s-%d", x.Request, x.tried),
	}
	if on.Form == x.Form {
		call.Header = x.Header
	}
	answer, err := on.Chat(r.ctx, call)
	if err != nil {
		answer, err = x.askWithout(r.ctx, on, pair, translation, call, err)
	}
	if err != nil {
		return x.clientFailure(on, x.slow(err))
	}
	r.body = answer.Body
	x.on, x.pair, x.run = on, pair, r
	if x.asked.Stream {
		x.stream, err = x.openStream(answer, times.Idle)
	} else {
		x.whole, err = x.readWhole(answer)
	}
	return x.clientFailure(on, x.slow(arrived(err)))
}

// translation returns the line's requirements beside the client's body.
func (x *exchange) translation(on *line.Candidate) wire.Translation {
	_, limit := x.Model.OutputLimit(x.asked.Limit)
	var noThinking wire.Member
	if member := on.Line.Host().NoThinking(); x.Model.Reasoning && !on.Refuses(member.Name) {
		noThinking = member
	}
	return wire.Translation{
		Edits: wire.Edits{Model: on.ProviderModel, Limit: limit, LimitField: x.limitField(on), AskUsage: true,
			SystemOnly: on.Line.Host().KnowsSystemOnly(on.ProviderModel), Efforts: x.Model.Efforts, NoThinking: noThinking,
			Omit: on.Line.LeavesOut(x.asked.Extra)},
		MaxOutput: x.Model.MaxOutputTokens, Reasoning: x.Model.Reasoning, OpenAI: on.Line.Host().ObeysBothLimits(),
		NoEncrypted: on.Refuses(includeField), NoSummary: on.Refuses(summaryField),
	}
}

// longPrompt is the size in bytes of a prompt that may delay a good line's first token. Images and
// files may delay it at any size.
const longPrompt = 64 << 10

// slow marks a timeout as unproven if the request may need so much time: the client controls the
// length of a whole answer and the size of a prompt.
func (x *exchange) slow(err error) error {
	var f *upstream.Failure
	if errors.As(err, &f) && f.Code == fault.UpstreamTimeout && (!x.asked.Stream || x.long()) {
		f.Unproven = true
	}
	return err
}

// long reports whether a good line may need long to read the prompt.
func (x *exchange) long() bool {
	b := x.asked.Bound
	return b.TextBytes > longPrompt || b.Images > 0 || b.Unbounded
}

// arrived sets status 200 on a failure after the head of an answer.
func arrived(err error) error {
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
