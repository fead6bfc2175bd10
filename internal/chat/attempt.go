package chat

import (
	"context"
	"errors"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/translate"
)

// attempt makes one upstream call and checks the beginning of its answer. It stores a good answer
// in x, and closes a failed call before it returns.
func (x *chatRequest) attempt(ctx context.Context, on *line.Attempt) (err error) {
	translation := x.translation(&on.Candidate)
	ignored := x.omittedFields(&on.Candidate, translation.Omit)
	x.Ignored = call.NamesOfFields(ignored)
	on.Ignore(len(ignored), x.Ignored)
	translation.Images = x.images(ctx)
	pair := translate.New(x.Body, on.Form, x.identity(&on.Candidate))
	body, err := pair.Body(translation) // fetching images takes time; it does not count against the line
	if err != nil {
		return line.UntranslatableError{Err: err}
	}
	r := call.OpenCall(ctx, x.Now(), x.traceAttempt(on))
	defer func() {
		if err != nil {
			r.Close()
		}
		x.traceBeginning(r, err)
	}()
	times := on.Line.TimeoutsFor(x.Model)
	if x.params.Stream {
		r.Limit(times.FirstToken, "no token came")
	} else {
		r.Limit(times.Total, "no whole answer came")
	}
	sent := chatcall.Call{
		Form: on.Form, Model: on.ProviderModel, Stream: x.params.Stream, Body: body, IdempotencyKey: x.IdempotencyKey(),
	}
	if on.Form == x.Form {
		sent.Header = x.Header
	}
	answer, err := on.Chat(r.Ctx, sent)
	if err != nil {
		answer, err = x.retryWithout(r.Ctx, on, pair, translation, sent, err)
	}
	if err != nil {
		return x.clientFailure(on, x.markUnproven(err))
	}
	r.Body = answer.Body
	x.Target, x.pair, x.Call = on, pair, r
	if x.params.Stream {
		x.stream, err = x.openStream(answer, times.Idle)
	} else {
		x.whole, err = x.readWhole(answer)
	}
	return x.clientFailure(on, x.markUnproven(call.WithStatus(err)))
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
			Origin: on.Line.Origin(), Signs: on.Line.Host().SignsThinking(),
			Omit: on.Line.DroppedFields(x.Model, x.params.Extra)},
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

// reported returns the failure for an error reported by a provider inside an answer or a frame.
func reported(on *line.Attempt, e *wire.ProviderError) *upstream.Failure {
	if e.Body != nil {
		if f := on.Source().Classify(200, "application/json", e.Body, nil); f != nil {
			return f
		}
	}
	return upstream.Fail(fault.UpstreamUnavailable, e)
}
