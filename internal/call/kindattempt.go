package call

import (
	"context"
	"errors"
	"net/http"

	"tollgate/internal/fault"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
)

// kindAttempt is one attempt of a request of a kind: the calls of one line, one after the other, and
// their answers.
type kindAttempt struct {
	*kindFlow
	call   *UpstreamCall
	on     *line.Attempt
	parts  []kind.Part
	media  string // content type of a whole answer
	counts kindCounts
	stream *kindStream // nil for a whole answer
}

// newAttempt returns an attempt on a line.
func (x *kindFlow) newAttempt(ctx context.Context, on *line.Attempt) *kindAttempt {
	return &kindAttempt{
		kindFlow: x, on: on, call: x.OpenCall(ctx, on, trace.Operation(x.Kind.Name), false),
		parts: x.Body.Parts(on.MaxInputs(x.Kind.Form())), counts: kindCounts{used: kind.Quantities{}},
	}
}

// run makes the calls and reads their answers. It closes a failed call before it returns.
func (a *kindAttempt) run() error {
	omit := a.on.Line.DroppedFields(a.Model, a.Body.Unknown())
	a.Ignored = NamesOfFields(omit)
	a.on.Ignore(len(omit), a.Ignored)
	a.call.Limit(a.on.Line.TimeoutsFor(a.Model).Total, "no whole answer came")
	for i, part := range a.parts {
		if err := a.callPart(part, omit, i == len(a.parts)-1); err != nil {
			a.CloseCall()
			err = a.failed(err)
			TraceFailure(a.call.Span, err)
			return err
		}
	}
	a.call.Span.Status(http.StatusOK)
	return nil
}

// callPart sends one part and reads its answer.
func (a *kindAttempt) callPart(part kind.Part, omit []string, last bool) error {
	send := a.on.ChatPart
	if last {
		send = a.on.Chat
	}
	streamed, ok := part.(kind.StreamedPart)
	if ok = ok && streamed.AsksStream(); ok {
		a.call.Limit(a.on.Line.TimeoutsFor(a.Model).FirstToken, "no byte of the answer came")
	}
	var file *kind.Upload
	if p, ok := part.(kind.FilePart); ok {
		file = p.File()
	}
	answer, err := send(a.call.Ctx, chatcall.Call{
		Form: a.Kind.Form(), Path: a.LinePath, Model: a.on.ProviderModel, Body: part.Body(a.on.ProviderModel, omit),
		File: file, AnyType: a.Kind.AnyType, Reserve: a.Reserve, IdempotencyKey: a.IdempotencyKey(),
	})
	if err != nil {
		return err
	}
	if last {
		a.call.Body = answer.Body
	} else {
		defer answer.Body.Close()
	}
	if ok {
		a.stream, err = a.openStream(streamed, answer)
		return err
	}
	return a.readPart(part, answer)
}

// readPart reads a whole answer.
func (a *kindAttempt) readPart(part kind.Part, answer *chatcall.Response) error {
	body, err := a.ReadBody(answer.Body, answer.Length, "ask for less")
	if err != nil {
		return err
	}
	a.media = answer.ContentType
	reported, err := part.Read(body)
	if err != nil {
		if f := a.on.Source().Classify(http.StatusOK, answer.ContentType, body, nil); f != nil {
			return f
		}
		return upstream.Fail(fault.UpstreamUnavailable, err)
	}
	a.counts.add(reported, part.Bound(), func() kind.Quantities { return part.Count(&a.engine.Counter) })
	return nil
}

// failed completes the failure of an attempt. It adds the tokens of the answered parts, because the provider
// charges the operator for them. A timeout is marked as unproven, because the client controls the length of
// the answer.
func (a *kindAttempt) failed(err error) error {
	err = WithStatus(err)
	var f *upstream.Failure
	if errors.As(err, &f) {
		f.Tokens.Prompt += a.counts.used[kind.Input]
		f.Unproven = f.Unproven || f.Code == fault.UpstreamTimeout
	}
	return err
}

// send settles and sends a whole answer.
func (a *kindAttempt) send() error {
	if a.Disconnected() {
		a.RecordWaste(a.Model, upstream.TokenCounts{Prompt: a.counts.used[kind.Input]})
		return a.Fail(a.ClientContext().Err())
	}
	a.call.Close()
	pieces := a.Body.Answer(a.parts, kind.Charged{Request: a.Request, Model: a.ModelID, Used: a.counts.used})
	if err := a.SettleFirst(a.bill(a.counts)); err != nil {
		return err
	}
	a.SendSettled(a.media, pieces)
	return nil
}
