package call

import (
	"context"
	"net/http"

	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/trace"
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
	// Snapshot prices and routes the request. Model is one of its models.
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
	defer cancel()
	attempts := x.Route(ctx, line.RoutingRequest{
		Snapshot: x.Snapshot, Model: x.Model, Form: x.Kind.Form(), Routing: x.Body.Routing(), Account: x.Account,
		Conversation: wire.Hash(x.Request),
	})
	var a *kindAttempt
	for on := attempts.Next(); on != nil; on = attempts.Next() {
		a = x.newAttempt(ctx, on)
		attempts.Report(a.run())
	}
	switch {
	case attempts.Err() != nil:
		return x.Fail(attempts.Err())
	case a.stream != nil:
		return a.stream.send()
	}
	return a.send()
}

// check refuses a request without a possible line, or with unknown fields if Engine.RefuseUnknown is set.
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
