// Package chat owns the processing of one chat request on top of package call: it translates the
// request for its lines, checks the beginning of the answer, and passes the answer to the client while
// it reads the usage.
//
// Invariants:
//   - No request runs without a hold, and every hold is ended exactly once.
//   - A failure before a stream has passed its check with a token, or before a whole answer is
//     settled, is an error answer without a charge. A later failure charges the produced part.
//   - The end of an answer is sent only after its charge is durable: a whole answer from its status
//     line, a stream from the last choice's finish. If the charge fails, the connection is cut, so
//     that no client takes the answer for complete.
//   - Events are never split; buffered events are sent in one write.
package chat

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/catalog"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/wire"
)

// Options are a conductor's observers. They may be nil.
type Options struct {
	// FirstToken is called with the time between a request and the start of its stream. It must not block.
	FirstToken func(model string, took time.Duration)
	// UnknownUsage is called for each unknown member of a line's usage with a count. It must not
	// block.
	UnknownUsage func(line, member string)
}

// Conductor processes chat requests. It is safe for concurrent use.
type Conductor struct {
	*call.Engine
	opts Options
}

// New returns a conductor of an engine.
func New(e *call.Engine, o Options) *Conductor { return &Conductor{Engine: e, opts: o} }

// AcceptedRequest is one authenticated chat request: its key may use its model, and its body passed
// Check.
type AcceptedRequest struct {
	// Form is the client's form.
	Form wire.Form
	// Admission identifies the caller: its ids, the version of the checked key row, the account's
	// factor, and the time of the request by the conductor's clock. The conductor adds the model
	// and the amount.
	ledger.Admission
	// Snapshot prices and routes the request. Model is one of its models.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	Body     wire.Request
	// Header holds the client's headers for lines of the client's form.
	Header http.Header
	// DroppedFlags names the flags of the client's headers missing in Header.
	DroppedFlags []string
	// Image fetches the image at an address in the request, for lines with inline images only. It
	// returns the media type and the bytes; the bytes may stay in memory until the request ends.
	// The error is a *fault.Error without a field. Image must be safe for concurrent use. If nil,
	// the request has no images, or such lines cannot serve it.
	Image func(ctx context.Context, address string) (mime string, data []byte, err error)
	// Store stores the answer to a request of the responses form. Complete calls it with the client's answer,
	// before the charge and the last bytes, at most once, and not for a failed or interrupted answer. Store
	// bounds its time and handles its errors. If nil, nothing is stored.
	Store func(ctx context.Context, answer []byte)
	// Span is the request's span, or nil without a trace.
	Span *trace.Span
}

// Complete processes one chat request and writes its answer. ctx is the client's context and ends
// when the client disconnects.
//
// If Complete returns an error, it has written nothing: a *fault.Error for the caller to render, or
// ledger.ErrKeyChanged. It panics with http.ErrAbortHandler to cut the connection, after a failed
// settlement of the answer's end or after the client has disconnected. Otherwise it returns nil,
// also for a broken stream with an error in its last event.
func (c *Conductor) Complete(ctx context.Context, w http.ResponseWriter, r AcceptedRequest) error {
	x := c.newRequest(ctx, w, r)
	x.AcceptedRequest.Span.Model(x.Model.ID)
	if err := x.checkRouting(); err != nil {
		return x.Refuse(err)
	}
	ctx, cancel, err := x.Begin(x.newAdmission())
	if err != nil {
		return err
	}
	defer x.Close()
	defer cancel()
	attempts := x.Route(ctx, x.routingRequest())
	var a *attempt
	for on := attempts.Next(); on != nil; on = attempts.Next() {
		a = &attempt{chatRequest: x, on: on}
		attempts.Report(a.run(ctx))
	}
	if err := attempts.Err(); err != nil {
		return x.Fail(err)
	}
	return a.answer.send()
}

// newRequest returns the state of a request.
func (c *Conductor) newRequest(ctx context.Context, w http.ResponseWriter, r AcceptedRequest) *chatRequest {
	r.Admission.Model = r.Model.ID
	x := &chatRequest{Conductor: c, AcceptedRequest: r, params: r.Body.Params(), Flow: c.NewFlow(ctx, w, r.Admission, r.Span)}
	x.choice, x.routing = x.Model.PricingOf(x.params, r.Factor)
	return x
}

// checkRouting refuses a request without a possible line, and choices without a price.
func (x *chatRequest) checkRouting() error {
	if err := x.Snapshot.CheckRouting(x.Model, x.Form, x.routing); err != nil {
		return err
	}
	if err := x.CheckUnknown(x.Snapshot, x.Model, x.params.Extra); err != nil {
		return err
	}
	if err := x.Model.CheckPriced(x.choice); err != nil {
		return err
	}
	var err error
	x.choice.Calls, err = x.Snapshot.CalledModels(x.Model, x.params.ModelCalls)
	return err
}

// newAdmission returns the request's admission for the ledger.
func (x *chatRequest) newAdmission() ledger.Admission {
	a := x.Admission
	a.FreeDaily, a.Revision = x.Model.FreeDailyRequests, x.Snapshot.Revision
	a.Amount = x.Model.HighestCost(x.params.Bound, x.Snapshot.HoldLimit(x.Model, x.Form, x.params.Limit), x.params.N, x.choice)
	limit := "max_tokens"
	switch x.Form {
	case wire.FormResponses:
		limit = "max_output_tokens"
	case wire.FormGemini:
		limit = "generationConfig.maxOutputTokens"
	}
	a.Advice = "lower " + cmp.Or(x.params.LimitParam, limit)
	return a
}

// routingRequest returns the requirements for lines.
func (x *chatRequest) routingRequest() line.RoutingRequest {
	return line.RoutingRequest{
		Snapshot: x.Snapshot, Model: x.Model, Form: x.Form, Routing: x.routing, Tools: x.Body.HasTools(), Account: x.Account,
		Conversation: wire.Hash(x.Account) ^ x.params.Conversation,
	}
}
