package call

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/kind"
)

// KindRequest is one authenticated request of a kind: its key may use its model, and its body passed
// Check.
type KindRequest struct {
	Kind *kind.Definition
	// LinePath is the path of the calls below a line's base address.
	LinePath string
	// Admission identifies the caller. The engine adds the model and the amount.
	ledger.Admission
	// Snapshot prices and routes the request; Model is of it.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	Body     kind.Request
	// ModelID is the model id sent by the client.
	ModelID string
	// Span is the request's span, or nil without a trace.
	Span *trace.Span
}

// kindFlow is the state of one request of a kind.
type kindFlow struct {
	Flow
	KindRequest

	// Set by the good attempt.
	parts     []kind.Part
	bodies    []WholeBody
	used      kind.Quantities
	providers int // counts believed from the provider
	gateways  int // counts of the gateway
	media     string
	stream    *kindStream // nil for a whole answer
}

// Serve processes one request of a kind and writes its answer. ctx is the client's context. If Serve
// returns an error, it has written nothing: a *fault.Error for the caller to render, or
// ledger.ErrKeyChanged. It panics with http.ErrAbortHandler to cut the connection.
func (e *Engine) Serve(ctx context.Context, w http.ResponseWriter, r KindRequest) error {
	r.Admission.Model = r.Model.ID
	x := &kindFlow{KindRequest: r, Flow: e.NewFlow(ctx, w, r.Admission, r.Span)}
	x.Span.Model(x.Model.ID)
	if err := x.check(); err != nil {
		return x.Refuse(err)
	}
	ctx, cancel, err := x.Begin(x.newAdmission())
	if err != nil {
		return err
	}
	defer x.Close()
	defer x.releaseBodies()
	defer cancel()
	x.Attempts, err = e.Lines.Try(ctx, line.RoutingRequest{
		Snapshot: x.Snapshot, Model: x.Model, Form: x.Kind.Form(), Routing: x.Body.Routing(), Account: x.Account,
		Conversation: wire.Hash(x.Request),
	}, x.attempt)
	if err != nil {
		return x.Fail(err)
	}
	if x.stream != nil {
		return x.sendStream()
	}
	return x.send()
}

// check refuses a request without a possible line.
func (x *kindFlow) check() error {
	if err := x.Snapshot.CheckRouting(x.Model, x.Kind.Form(), x.Body.Routing()); err != nil {
		return err
	}
	return x.engine.CheckUnknown(x.Snapshot, x.Model, x.Body.Unknown())
}

// newAdmission returns the request's admission for the ledger.
func (x *kindFlow) newAdmission() ledger.Admission {
	a := x.Admission
	a.FreeDaily, a.Revision, a.Advice = x.Model.FreeDailyRequests, x.Snapshot.Revision, x.Kind.Advice
	a.Amount = x.Model.HighestUnitCost(x.Body.Parts(0)[0].Bound(), a.Factor)
	return a
}

// attempt makes the calls of one line, one after the other, and reads their answers. It stores good
// answers in x, and closes a failed call before it returns.
func (x *kindFlow) attempt(ctx context.Context, on *line.Attempt) (err error) {
	x.releaseBodies()
	x.parts, x.used, x.providers, x.gateways = x.Body.Parts(on.Line.MaxInputs), kind.Quantities{}, 0, 0
	omit := on.Line.DroppedFields(x.Model, x.Body.Unknown())
	x.Ignored = NamesOfFields(omit)
	on.Ignore(len(omit), x.Ignored)
	x.AttemptSpan = x.Span.Attempt(trace.AttemptStart{
		Operation: trace.Operation(x.Kind.Name), Line: on.Line.ID, Provider: on.Line.Provider, BaseURL: on.Line.BaseURL, Model: on.ProviderModel,
	})
	r := OpenCall(ctx, x.engine.Now(), x.AttemptSpan)
	defer func() {
		if err != nil {
			r.Close()
		}
		x.traceAttempt(err)
	}()
	r.Limit(on.Line.TimeoutsFor(x.Model).Total, "no whole answer came")
	x.Target, x.Call = on, r
	for i, part := range x.parts {
		if err := x.callPart(on, r, part, omit, i == len(x.parts)-1); err != nil {
			return x.failed(err)
		}
	}
	return nil
}

// callPart sends one part and reads its answer.
func (x *kindFlow) callPart(on *line.Attempt, r *UpstreamCall, part kind.Part, omit []string, last bool) error {
	send := on.ChatPart
	if last {
		send = on.Chat
	}
	streamed, ok := part.(kind.StreamedPart)
	if ok = ok && streamed.AsksStream(); ok {
		r.Limit(on.Line.TimeoutsFor(x.Model).FirstToken, "no byte of the answer came")
	}
	var file *kind.Upload
	if p, ok := part.(kind.FilePart); ok {
		file = p.File()
	}
	answer, err := send(r.Ctx, chatcall.Call{
		Form: x.Kind.Form(), Path: x.LinePath, Model: on.ProviderModel, Body: part.Body(on.ProviderModel, omit),
		File: file, AnyType: x.Kind.AnyType, IdempotencyKey: x.IdempotencyKey(),
	})
	if err != nil {
		return err
	}
	if last {
		r.Body = answer.Body
	} else {
		defer answer.Body.Close()
	}
	if ok {
		return x.openStream(on, streamed, answer)
	}
	body, err := x.engine.ReadBody(r.Ctx, answer.Body, answer.Length, "ask for less")
	x.bodies = append(x.bodies, body)
	if err != nil {
		return err
	}
	x.media = answer.ContentType
	reported, err := part.Read(body.Raw)
	if err != nil {
		if f := on.Source().Classify(http.StatusOK, answer.ContentType, body.Raw, nil); f != nil {
			return f
		}
		return upstream.Fail(fault.UpstreamUnavailable, err)
	}
	used, providers, gateways := kind.Believed(reported, part.Bound(), func() kind.Quantities { return part.Count(&x.engine.Counter) })
	x.used.Add(used)
	x.providers, x.gateways = x.providers+providers, x.gateways+gateways
	return nil
}

// failed completes the failure of an attempt: the tokens of its answered parts are the operator's loss.
// A timeout is unproven, because the client controls the length of the answer.
func (x *kindFlow) failed(err error) error {
	err = WithStatus(err)
	var f *upstream.Failure
	if errors.As(err, &f) {
		f.Tokens.Prompt += x.used[kind.Input]
		f.Unproven = f.Unproven || f.Code == fault.UpstreamTimeout
	}
	return err
}

// traceAttempt records the end of an attempt in its span.
func (x *kindFlow) traceAttempt(err error) {
	if err == nil {
		x.AttemptSpan.Status(http.StatusOK)
		return
	}
	TraceFailure(x.AttemptSpan, err)
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

// releaseBodies returns the memory of the answers to the budget.
func (x *kindFlow) releaseBodies() {
	for i := range x.bodies {
		x.engine.ReleaseBody(&x.bodies[i])
	}
	x.bodies = nil
}

// send settles and sends the answer.
func (x *kindFlow) send() error {
	if x.Disconnected() {
		x.Attempts[len(x.Attempts)-1].RecordWaste(x.Target, x.Model, upstream.TokenCounts{Prompt: x.used[kind.Input]})
		return x.Fail(x.ClientContext().Err())
	}
	x.Call.Close()
	pieces := x.Body.Answer(x.parts, kind.Charged{Request: x.Request, Model: x.ModelID, Used: x.used})
	if err := x.SettleFirst(x.bill()); err != nil {
		return err
	}
	size := 0
	for _, piece := range pieces {
		size += len(piece)
	}
	x.AnswerHeader().Set("Content-Length", strconv.Itoa(size))
	x.WriteHead(x.media)
	for _, piece := range pieces {
		if err := x.Write(piece); err != nil {
			break // the answer is settled and stays charged even if the client has disconnected
		}
	}
	return nil
}

// bill returns the bill for the counts.
func (x *kindFlow) bill() Bill {
	measured := x.Model.Measure()
	b := Bill{Cost: x.Model.UnitCost(x.used, x.Factor), Source: ledger.SourceProvider, OwnMeasure: measured.Own}
	switch {
	case x.providers == 0 && x.gateways > 0:
		b.Source = ledger.SourceGateway
	case x.gateways > 0:
		b.Source = ledger.SourceBoth
	}
	b.Tokens, b.Quantity = x.counts(measured)
	if cost, ok := x.Target.Line.UnitCost(x.Model, x.used); ok {
		b.LineCost = &cost
	}
	return b
}

// counts returns the counts for the receipt.
func (x *kindFlow) counts(measured kind.Measure) (t ledger.Tokens, q measure.Quantity) {
	switch {
	case measured.Quantity != "":
		q = measure.Quantity{Unit: measure.Unit(measured.Quantity), N: x.used[measured.Units[0]]}
	case measured.CountsTokens():
		for _, unit := range measured.Units {
			if unit.IsOutput() {
				t.Completion += x.used[unit]
			} else {
				t.Prompt += x.used[unit]
			}
		}
	}
	return t, q
}
