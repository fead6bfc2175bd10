// Package chat owns the conduct of one chat request: it holds the highest
// possible cost, lets the lines be tried, judges the beginning of the answer,
// passes it to the client while its usage is read, and settles.
//
// Invariants:
//   - Nothing runs without a hold, and every hold is ended exactly once.
//   - Until a stream's beginning was judged and holds a token, and until a whole
//     answer is settled, any failure is an error answer that costs nothing.
//     After it, what was produced is charged.
//   - The end of an answer goes out only after its charge is durable: a whole
//     answer from its status line on, a stream from the last choice's finish
//     on. An end that could not be settled is cut off, so that no client takes
//     the answer for complete.
//   - Events are never split; those that have already arrived go out in one
//     write.
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

// errTimeOver is in the cause of a context that ended with the request timeout.
var errTimeOver = errors.New("the request's time is over")

// Options are a conductor's surroundings and bounds. Ledger and Lines are
// required; zero values stand for the defaults.
type Options struct {
	Ledger *ledger.Ledger
	Lines  *line.Lines
	// Counter counts tokens where a provider does not say how many there were.
	Counter *wire.Counter
	// Log gets what an operator must know and no answer shows.
	Log *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// RequestTimeout is the longest a request may take over all lines.
	// Default 15m.
	RequestTimeout time.Duration
	// WriteTimeout is how long a client may take to accept a write. Default
	// 30s.
	WriteTimeout time.Duration
	// MaxAnswer is the longest whole answer of a provider, in bytes. Default
	// 64 MiB.
	MaxAnswer int64
	// AnswerBudget bounds the bytes of all answers that the node holds at a
	// time. Default four times MaxAnswer.
	AnswerBudget int64
	// ExposeLine names the line in the answer's header x-tollgate-line.
	ExposeLine bool
	// RefuseUnknown refuses requests with fields that every line of the model would
	// leave out. Otherwise the fields are left out.
	RefuseUnknown bool
	// FirstToken is told how long after its request a stream of a model began; it
	// must not wait. nil: nobody is told.
	FirstToken func(model string, took time.Duration)
	// UnknownUsage is called for each member of a line's usage that nobody knows and
	// that counts something. It must not wait. It may be nil.
	UnknownUsage func(line, member string)
}

// Conductor conducts chat requests. It is safe for concurrent use.
type Conductor struct {
	opts   Options
	admit  func(context.Context, ledger.Admission) (hold, error)
	admits func(context.Context, ledger.Admission) error // what admit would say
	refuse func(ledger.Refusal)
	budget budget
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
	if o.Counter == nil {
		o.Counter = &wire.Counter{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = 15 * time.Minute
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
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
		c.refuse, c.admits = o.Ledger.Refused, o.Ledger.Admissible
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

// AcceptedRequest is one chat request that passed the front desk: its key may
// use its model, and its body passed Check.
type AcceptedRequest struct {
	// Form is what the client speaks.
	Form wire.Form
	// Admission is who asks: its ids, the version of the key's row that the checks were
	// made on, the account's factor, and when the request arrived, by the conductor's
	// clock. What it asks for the conductor adds.
	ledger.Admission
	// Snapshot prices and routes the request; Model is of it.
	Snapshot *catalog.Snapshot
	Model    *catalog.Model
	Body     wire.Request
	// Header holds the client's headers that go to lines of its own form.
	Header http.Header
	// DroppedFlags names the flags of the client's headers that Header leaves out.
	DroppedFlags []string
	// Image fetches the image at an address of the client's, for lines that take
	// images inline alone: its media type and its bytes, which may be in memory
	// until the request has ended. The error is a *fault.Error without a field. It
	// is called several times at once. Nil: the request has no images, or such
	// lines cannot take it.
	Image func(ctx context.Context, address string) (mime string, data []byte, err error)
	// Span is the request's in its trace; nil: it is not traced.
	Span *trace.Span
}

// Complete conducts one chat request and writes its answer. ctx is the client's:
// it ends when the client leaves.
//
// An error means that nothing was written: a *fault.Error for the door to
// render, or ledger.ErrKeyChanged. It panics with http.ErrAbortHandler when the
// connection has to be cut: the answer's end could not be settled, or the
// client is gone. Otherwise it returns nil, also for a stream that broke off
// and said so in its last event.
func (c *Conductor) Complete(ctx context.Context, w http.ResponseWriter, call AcceptedRequest) error {
	x := &exchange{
		Conductor: c, AcceptedRequest: call, asked: call.Body.Asking(), client: ctx, w: w, control: http.NewResponseController(w),
	}
	x.Span.Model(x.Model.ID)
	x.choice, x.routing = x.Model.ChoiceOf(x.asked, call.Factor)
	if err := x.checkOffered(); err != nil {
		f := fault.Of(err)
		x.logRefusal(f.Status(), f.Code)
		return err
	}
	var err error
	x.admitted = x.admission()
	step := x.Span.Step("hold")
	x.hold, err = c.admit(ctx, x.admitted)
	step.End()
	if err != nil {
		if x.gone() {
			panic(http.ErrAbortHandler)
		}
		return err
	}
	x.Span.Held(int64(x.admitted.Amount))
	defer x.close()

	ctx, cancel := context.WithTimeoutCause(ctx, c.opts.RequestTimeout,
		fmt.Errorf("%w: no answer within the request timeout of %s: %w", errTimeOver, c.opts.RequestTimeout, context.DeadlineExceeded))
	defer cancel()
	x.attempts, err = c.opts.Lines.Try(ctx, line.RoutingRequest{
		Snapshot: call.Snapshot, Model: call.Model, Form: call.Form, Routing: x.routing, Conversation: x.conversation(),
		Tools: x.Body.HasTools(), Account: call.Account,
	}, x.attempt)
	switch {
	case err != nil:
		return x.fail(err)
	case x.asked.Stream:
		return x.pass()
	}
	return x.deliver()
}

// checkOffered refuses what the client chose and no line may get: what has no
// price.
func (x *exchange) checkOffered() error {
	if err := x.Snapshot.CheckRouting(x.Model, x.Form, x.routing); err != nil {
		return err
	}
	if err := x.checkKnown(); err != nil {
		return err
	}
	if err := x.Model.CheckPriced(x.choice); err != nil {
		return err
	}
	var err error
	x.choice.Calls, err = x.Snapshot.CalledModels(x.Model, x.asked.ModelCalls)
	return err
}

// checkKnown refuses fields that no line of the model would get, if the operator
// wants them refused.
func (x *exchange) checkKnown() error {
	if !x.opts.RefuseUnknown || len(x.asked.Extra) == 0 {
		return nil
	}
	name := x.Snapshot.NobodyTakes(x.Model, x.asked.Extra)
	if name == "" {
		return nil
	}
	shown := nameOfField(name)
	return fault.At(fault.InvalidRequest, shown, "`%s` is not a field that this service knows for model %s. Leave it out.", shown, x.Model.ID)
}

// admission is what the ledger has to decide.
func (x *exchange) admission() ledger.Admission {
	a := x.Admission
	a.Model, a.FreeDaily, a.Revision = x.Model.ID, x.Model.FreeDailyRequests, x.Snapshot.Revision
	a.Amount = x.Model.HighestCost(x.asked.Bound, x.Snapshot.HeldLimit(x.Model, x.Form, x.asked.Limit), x.asked.N, x.choice)
	limit := "max_tokens"
	if x.Form == wire.FormResponses {
		limit = "max_output_tokens"
	}
	a.Advice = "lower " + cmp.Or(x.asked.LimitParam, limit)
	return a
}

// conversation tells the requests of one conversation of one account from
// others.
func (x *exchange) conversation() uint64 {
	return wire.Hash(x.Account) ^ x.asked.Conversation
}

// logRefusal logs a request that ended before it was admitted.
func (x *exchange) logRefusal(status int, code fault.Code) {
	x.refuse(ledger.Refusal{
		Request: x.Request, Account: x.Account, Key: x.Key, Model: x.Model.ID, Endpoint: x.Endpoint,
		Status: status, Code: string(code), Received: x.Received, Duration: x.since(),
	})
}
