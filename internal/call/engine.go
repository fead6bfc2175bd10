// Package call owns the life of one request that is answered at once: it reserves the maximum cost,
// bounds the upstream calls and the answer's size, settles the charge and writes the answer. Package
// chat builds on Flow. Engine.Serve runs the requests of every other kind (package wire/kind).
//
// Invariants:
//   - No request runs without a hold, and every hold is ended exactly once.
//   - A whole answer is sent only after its charge is durable. If the charge fails, the client gets an
//     error; if its outcome is unknown, the connection is cut.
package call

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/wire"
)

// ErrTimeOver is the cause of a context ended by the request timeout.
var ErrTimeOver = errors.New("the request's time is over")

// Options are an engine's surroundings and bounds. Ledger and Lines are required; zero values stand
// for the defaults.
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
}

// Engine runs requests and holds what they share on a node. It is safe for concurrent use.
type Engine struct {
	Options
	// Admit reserves the maximum cost of a request. Admissible checks like Admit without a hold.
	// LogRefused logs a request refused before its admission. Tests replace them.
	Admit      func(context.Context, ledger.Admission) (RequestHold, error)
	Admissible func(context.Context, ledger.Admission) error
	LogRefused func(ledger.Refusal)
	// Answers bounds the memory of answers.
	Answers AnswerMemory
	// Counter counts tokens without a provider's count.
	Counter wire.Counter
}

// RequestHold is the reserved money of a request: a *ledger.Hold, or a test's.
type RequestHold interface {
	// Progress records the produced part of an answer.
	Progress(ledger.Progress)
	// Lost reports whether the sweep has ended the hold.
	Lost() bool
	// Settle ends the hold with a charge. It returns ledger.ErrNotSettled or ledger.ErrUnknown.
	Settle(context.Context, ledger.End) error
	// Release ends the hold without a charge.
	Release(ledger.End)
}

// New returns an engine.
func New(o Options) *Engine {
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
	e := &Engine{Options: o}
	e.Answers.limit = o.AnswerBudget
	if o.Ledger != nil {
		e.LogRefused, e.Admissible = o.Ledger.Refused, o.Ledger.Admissible
		e.Admit = func(ctx context.Context, a ledger.Admission) (RequestHold, error) {
			h, err := o.Ledger.Admit(ctx, a)
			if err != nil {
				return nil, err // not a nil *ledger.Hold in a RequestHold
			}
			return h, nil
		}
	}
	return e
}
