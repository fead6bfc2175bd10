package chat

import (
	"context"
	"errors"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/translate"
)

// attempt is one attempt of a request on a line: the call and the reading of its answer.
type attempt struct {
	*chatRequest
	on          *line.Attempt
	translation wire.Translation // the line's requirements
	pair        wire.Pair
	call        *call.UpstreamCall
	answer      answer // set if run succeeds

	modelTraced bool     // the model of the answer is recorded in the span
	finishes    []string // the finish reasons recorded in the span, by choice index
}

// answer is an answer whose beginning has passed its checks.
type answer interface {
	// send sends the answer, and settles it before its end. It returns like Conductor.Complete.
	send() error
}

// run makes the call and checks the beginning of its answer. It closes a failed call before it returns.
func (a *attempt) run(ctx context.Context) error {
	body, err := a.translate(ctx)
	if err != nil {
		return line.UntranslatableError{Err: err}
	}
	a.call = a.OpenCall(ctx, a.on, trace.Chat, a.params.Stream)
	if err = a.send(body); err != nil {
		a.CloseCall()
	}
	a.traceBeginning(err)
	return err
}

// translate returns the body for the line. Fetching images takes time that does not count against the
// line.
func (a *attempt) translate(ctx context.Context) (rawjson.Pieces, error) {
	a.translation = a.newTranslation(&a.on.Candidate)
	ignored := a.omittedFields(&a.on.Candidate, a.translation.Omit)
	a.Ignored = call.NamesOfFields(ignored)
	a.on.Ignore(len(ignored), a.Ignored)
	a.translation.Images = a.images(ctx)
	a.pair = translate.New(a.Body, a.on.Form, a.identity(&a.on.Candidate))
	return a.pair.Body(a.translation)
}

// send makes the call within its time limits and reads the beginning of the answer.
func (a *attempt) send(body rawjson.Pieces) error {
	times := a.on.Line.TimeoutsFor(a.Model)
	if a.params.Stream {
		a.call.Limit(times.FirstToken, "no token came")
	} else {
		a.call.Limit(times.Total, "no whole answer came")
	}
	sent := chatcall.Call{
		Form: a.on.Form, Model: a.on.ProviderModel, Stream: a.params.Stream, Body: body, IdempotencyKey: a.IdempotencyKey(),
	}
	if a.on.Form == a.Form {
		sent.Header = a.Header
	}
	got, err := a.on.Chat(a.call.Ctx, sent)
	if err != nil {
		got, err = a.retryWithout(sent, err)
	}
	if err != nil {
		return a.clientFailure(a.markUnproven(err))
	}
	a.call.Body = got.Body
	if a.params.Stream {
		a.answer, err = a.openStream(got, times.Idle)
	} else {
		a.answer, err = a.readWhole(got)
	}
	return a.clientFailure(a.markUnproven(call.WithStatus(err)))
}

// newTranslation returns a line's requirements in addition to the client's body.
func (x *chatRequest) newTranslation(on *line.Candidate) wire.Translation {
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
		NeedsReasoning: x.Model.Reasoning && on.Line.Host().NeedsReasoning(), NoReasoning: on.RefusesField(reasoningField),
		NoEncrypted: on.RefusesField(includeField), NoSummary: on.RefusesField(summaryField),
		NoStops: on.RefusesField(stopField),
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

// reportedFailure returns the failure for an error reported by a provider inside an answer or a frame.
func (a *attempt) reportedFailure(e *wire.ProviderError) *upstream.Failure {
	if e.Body != nil {
		if f := a.on.Source().Classify(200, "application/json", e.Body, nil); f != nil {
			return f
		}
	}
	return upstream.Fail(fault.UpstreamUnavailable, e)
}
