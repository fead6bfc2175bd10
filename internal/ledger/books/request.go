// Package books owns the decisions about money. The rows of a batch are read under lock into Books;
// Admit, End and Sweep change them, and the ledger writes the changes.
//
// Invariants: the package uses no database, no context and no clock, so the same rows, operation
// and time always have the same result, on both databases. A refusal changes nothing. A charge is
// never above its hold; a hold ends once; HeldSums are the sums of the open holds.
package books

import (
	"errors"
	"strings"
	"time"

	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
)

var (
	// ErrKeyChanged means that the key's row has changed since the caller's checks.
	ErrKeyChanged = errors.New("the key has changed since it was checked")
	// ErrDamaged marks an open hold whose account or key is missing.
	ErrDamaged = errors.New("the account or the key of the hold is gone")
	// ErrImplausible marks a hold with impossible figures.
	ErrImplausible = errors.New("the figures of the hold are out of range")
)

// Admission is a request to admit.
type Admission struct {
	Request      string // req_…
	Account, Key string
	// KeyVersion is the version of the key that the caller has checked.
	KeyVersion int64
	Model      string
	Endpoint   string // the path, such as /v1/chat/completions
	// Advice says how to make the request cheaper, as the last clause of an error message, such as
	// "lower max_tokens". It may be empty.
	Advice string
	// Help says where to add credit, as sentences of the message about a low balance. It may be empty.
	Help string
	// Amount is the maximum cost of the request over all attempts.
	Amount money.Amount
	// FreeDaily is a free model's number of requests for each account and UTC day. Zero means that
	// the model is not free.
	FreeDaily int64
	Revision  int64 // the catalog revision of the prices
	// Factor multiplies the catalog's prices for the account; 0 means no factor. Amount and all
	// costs include it.
	Factor   money.Factor
	Received time.Time
	// Job is the id of the submitted job; empty for chat.
	Job string
}

// Tokens are the counts of one answer. Cached is part of Prompt.
type Tokens struct {
	Prompt, Cached, Completion int64
}

// MaxCount bounds each count of one request. A provider may report any number.
const MaxCount = 1 << 40

// BoundedCount limits a count to 0 through MaxCount.
func BoundedCount(n int64) int64 { return max(0, min(n, MaxCount)) }

// Bounded returns the counts, each bounded by BoundedCount.
func (t Tokens) Bounded() Tokens {
	return Tokens{BoundedCount(t.Prompt), BoundedCount(t.Cached), BoundedCount(t.Completion)}
}

// maxText bounds the stored bytes of a text from a client or a provider.
const maxText = 256

// BoundedText makes a text from a client or a provider storable: at most 256 bytes, valid UTF-8, and
// without the zero byte, which PostgreSQL rejects.
func BoundedText(text string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(text[:min(len(text), maxText)], "\x00", ""), "")
}

// Outcome says how a request ended.
type Outcome int64

// The stored outcomes.
const (
	Billed  Outcome = 1 // charged, perhaps with 0
	Failed  Outcome = 2 // with an error, without a charge
	Closed  Outcome = 3 // the client disconnected before the first byte; no charge
	Refused Outcome = 4 // before or at admission
)

// End is the content of a request's receipt.
type End struct {
	Outcome Outcome
	// Cost is the cost of the usage. The charge is never more than the hold; the receipt records
	// the excess.
	Cost     money.Amount
	Tokens   Tokens
	Quantity measure.Quantity
	Source   UsageSource
	// LineCost is the cost of all attempts at their providers, or nil if unknown.
	LineCost *money.Amount
	Status   int    // the HTTP status sent to the client
	Code     string // the error's code, also of an error inside a stream; empty on success
	Line     string // the line of the answer
	// Streamed means that the client has got a part of the answer. That part is charged even if the
	// end cannot be settled in time (interface.md, Billing rules 6).
	Streamed bool
	// Attempts is the trace of the attempts: a value that encodes to a JSON list, or nil.
	Attempts  any
	FirstByte time.Duration // from receipt to the first byte of the answer
	Duration  time.Duration // from receipt to the end
}

// Progress is a stream's output so far.
type Progress struct {
	Cost     money.Amount
	Tokens   Tokens
	Quantity measure.Quantity
	Line     string
}

// Totals are counts of ended requests (interface.md, Usage).
type Totals struct {
	Cost                     money.Amount
	Requests, Billed, Failed int64
	Prompt, Completion       int64
}

// Plus returns the sum of two totals.
func (t Totals) Plus(o Totals) Totals {
	return Totals{
		Cost: money.Plus(t.Cost, o.Cost), Requests: money.Plus(t.Requests, o.Requests), Billed: money.Plus(t.Billed, o.Billed),
		Failed: money.Plus(t.Failed, o.Failed), Prompt: money.Plus(t.Prompt, o.Prompt),
		Completion: money.Plus(t.Completion, o.Completion),
	}
}
