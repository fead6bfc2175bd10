// Package chat owns the processing of one chat request: it reserves the maximum cost, routes the
// request to lines, checks the beginning of the answer, passes the answer to the client while it
// reads the usage, and settles the charge.
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
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/trace"
	"tollgate/internal/wire"
)

// errTimeOver is the cause of a context ended by the request timeout.
var errTimeOver = errors.New("the request's time is over")

// Options are a conductor's surroundings and bounds. Ledger and Lines are
// required; zero values stand for the defaults.
type Options struct {
	Ledger *ledger.Ledger
	Lines  *line.Lines
	// Log gets events for the operator that no answer shows.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// RequestTimeout is the longest a request may take over all lines.
	// Default 15m.
	RequestTimeout time.Duration
	// MaxAnswer is the longest whole answer of a provider, in bytes. Default
	// 64 MiB.
	MaxAnswer int64
	// AnswerBudget bounds the memory for all answers on the node, in bytes. Default four times
	// MaxAnswer.
	AnswerBudget int64
	// ExposeLine names the line in the answer's header x-tollgate-line.
	ExposeLine bool
	// RefuseUnknown refuses requests with fields not sent to any line of the model. If false, the
	// fields are left out.
	RefuseUnknown bool
	// FirstToken is called with the time between a request and the begin of its stream. It must not
	// block. It may be nil.
	FirstToken func(model string, took time.Duration)
	// UnknownUsage is called for each unknown member of a line's usage with a count. It must not
	// block. It may be nil.
	UnknownUsage func(line, member string)
}

// Conductor conducts chat requests. It is safe for concurrent use.
type Conductor struct {
	opts       Options
	admit      func(context.Context, ledger.Admission) (hold, error)
	admissible func(context.Context, ledger.Admission) error // checks like admit without a hold
	logRefused func(ledger.Refusal)
	budget     budget
	counter    wire.Counter // for tokens without a provider's count
}

// hold is the held money of a request: *ledger.Hold, or a test's.
type hold interface {
	Progress(ledger.Progress)
	Lost() bool
	Settle(context.Context, ledger.End) error
	Release(ledger.End)
}

// New makes a conductor.
func New(o Options) *Conductor {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 15 * time.Minute
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = 64 << 20
	}
	if o.AnswerBudget <= 0 {
		o.AnswerBudget = 4 * o.MaxAnswer
	}
	c := &Conductor{opts: o}
	c.budget.limit = o.AnswerBudget
	if o.Ledger != nil {
		c.logRefused, c.admissible = o.Ledger.Refused, o.Ledger.Admissible
		c.admit = func(ctx context.Context, a ledger.Admission) (hold, error) {
			h, err := o.Ledger.Admit(ctx, a)
			if err != nil {
				return nil, err // not a nil *ledger.Hold in a hold
			}
			return h, nil
		}
	}
	return c
}

// AcceptedRequest is one authenticated chat request: its key may use its model, and its body passed
// Check.
type AcceptedRequest struct {
	// Form is the client's form.
	Form wire.Form
	// Admission identifies the caller: its ids, the version of the checked key row, the account's
	// factor, and the time of the request by the conductor's clock. The conductor adds the model
	// and the amount.
	ledger.Admission
	// Snapshot prices and routes the request; Model is of it.
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
func (c *Conductor) Complete(ctx context.Context, w http.ResponseWriter, call AcceptedRequest) error {
	x := &chatRequest{
		Conductor: c, AcceptedRequest: call, params: call.Body.Params(), clientCtx: ctx, w: w, control: http.NewResponseController(w),
	}
	x.Span.Model(x.Model.ID)
	x.choice, x.routing = x.Model.PricingOf(x.params, call.Factor)
	if err := x.checkRouting(); err != nil {
		f := fault.Of(err)
		x.logRefusal(f.Status(), f.Code)
		return err
	}
	var err error
	x.admission = x.newAdmission()
	step := x.Span.Step("hold")
	x.hold, err = c.admit(ctx, x.admission)
	step.End()
	if err != nil {
		if x.disconnected() {
			panic(http.ErrAbortHandler)
		}
		return err
	}
	x.Span.Hold(int64(x.admission.Amount))
	defer x.close()

	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.RequestTimeout,
		fmt.Errorf("%w: no answer within the request timeout of %s: %w", errTimeOver, c.opts.RequestTimeout, context.DeadlineExceeded))
	defer cancel()
	x.attempts, err = c.opts.Lines.Try(ctx, x.routingRequest(), x.attempt)
	switch {
	case err != nil:
		return x.fail(err)
	case x.params.Stream:
		return x.sendStream()
	}
	return x.sendWhole()
}

// checkRouting refuses a request without a possible line, and choices without a price.
func (x *chatRequest) checkRouting() error {
	if err := x.Snapshot.CheckRouting(x.Model, x.Form, x.routing); err != nil {
		return err
	}
	if err := x.checkUnknownFields(); err != nil {
		return err
	}
	if err := x.Model.CheckPriced(x.choice); err != nil {
		return err
	}
	var err error
	x.choice.Calls, err = x.Snapshot.CalledModels(x.Model, x.params.ModelCalls)
	return err
}

// checkUnknownFields refuses fields not sent to any line of the model, if the operator has configured this.
func (x *chatRequest) checkUnknownFields() error {
	if !x.opts.RefuseUnknown || len(x.params.Extra) == 0 {
		return nil
	}
	name := x.Snapshot.FieldDroppedByAll(x.Model, x.params.Extra)
	if name == "" {
		return nil
	}
	shown := nameOfField(name)
	return fault.At(fault.InvalidRequest, shown, "`%s` is not a field that this service knows for model %s. Leave it out.", shown, x.Model.ID)
}

// newAdmission returns the request's admission for the ledger.
func (x *chatRequest) newAdmission() ledger.Admission {
	a := x.Admission
	a.Model, a.FreeDaily, a.Revision = x.Model.ID, x.Model.FreeDailyRequests, x.Snapshot.Revision
	a.Amount = x.Model.HighestCost(x.params.Bound, x.Snapshot.HoldLimit(x.Model, x.Form, x.params.Limit), x.params.N, x.choice)
	limit := "max_tokens"
	if x.Form == wire.FormResponses {
		limit = "max_output_tokens"
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

// logRefusal logs a request refused before its admission.
func (x *chatRequest) logRefusal(status int, code fault.Code) {
	x.logRefused(ledger.Refusal{
		Request: x.Request, Account: x.Account, Key: x.Key, Model: x.Model.ID, Endpoint: x.Endpoint,
		Status: status, Code: string(code), Received: x.Received, Duration: x.since(),
	})
}
