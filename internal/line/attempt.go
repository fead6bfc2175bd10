package line

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/line/health"
	"tollgate/internal/money"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/rawjson"
)

// Attempt is one attempt on a line, of a request or a job. Until it ends the
// line counts as busy, and what the attempt took of it is taken: a slot, the
// place on a half-open line. An attempt of a request ends by itself when it
// failed or the body of its answer is closed.
type Attempt struct {
	Candidate

	turn    keyTurn // of a request: its generators have turns of their own
	nextKey bool    // it is to be made once more, with the key that turn has now
	slot    bool
	begun   time.Time
	ended   atomic.Bool
	decided atomic.Bool // its place on a half-open line is given back

	sent    rawjson.Pieces // the body of the call
	body    io.ReadCloser  // nil while there is no answer
	ignored string         // fields of the request that the line did not get
	number  uint64         // of its sample in the stats
	good    bool           // the sample is that of an answer
	broken  atomic.Bool
}

// Chat makes the attempt's call, one. It implements chatcall.Adapter.
func (a *Attempt) Chat(ctx context.Context, call chatcall.Call) (*chatcall.Response, error) {
	a.sent = call.Body
	answer, err := a.turn.key.adapter.Chat(ctx, call)
	if err != nil {
		return nil, err
	}
	a.body = answer.Body
	answer.Body = (*attemptBody)(a)
	return answer, nil
}

// Ignore notes fields of the request that the line did not get: how many, and
// their names as they stand in the request log.
func (a *Attempt) Ignore(fields int, names string) {
	if a.ignored = names; fields > 0 {
		a.entry.stats.metrics.all.ignored.WithLabelValues(a.Line.ID).Add(float64(fields))
	}
}

// attemptBody is the body of an attempt's answer.
type attemptBody Attempt

// Read implements io.Reader.
func (b *attemptBody) Read(p []byte) (int, error) { return b.body.Read(p) }

// Close implements io.Closer and ends the attempt.
func (b *attemptBody) Close() error {
	err := b.body.Close()
	(*Attempt)(b).End()
	return err
}

// begin makes the line busy.
func (a *Attempt) begin() {
	s := a.entry.stats
	s.inFlight.Add(1)
	s.metrics.inFlight.Inc()
	a.begun = a.lines.now()
}

// End gives back what the attempt took; calls after the first do nothing.
func (a *Attempt) End() {
	if a.ended.Swap(true) {
		return
	}
	s := a.entry.stats
	s.inFlight.Add(-1)
	s.metrics.inFlight.Dec()
	a.decide()
	if a.slot {
		a.lines.slots.Give(a.Line.ID)
	}
}

// decide gives the place on a half-open line to another attempt.
func (a *Attempt) decide() {
	if a.HalfOpen && !a.decided.Swap(true) {
		a.entry.stats.EndHalfOpen()
	}
}

// Succeeded records that the line did what it was asked: its answer began, or
// it accepted the job.
func (a *Attempt) Succeeded() { a.succeeded(a.lines.now()) }

func (a *Attempt) succeeded(now time.Time) {
	s, took := a.entry.stats, now.Sub(a.begun)
	n, changes := s.Answered(now, a.origin, took)
	a.number, a.good = n, true
	a.turn.answered()
	if a.origin.Job { // which goes on for minutes, and has said what it can about the line
		a.decide()
	}
	s.metrics.answered(took)
	a.lines.found(a.entry, changes)
}

// Failed records that the attempt failed. The line's credentials are gone from f
// afterwards, and so is a provider's message that may repeat the request.
func (a *Attempt) Failed(f *upstream.Failure) { a.failed(a.lines.now(), f) }

func (a *Attempt) failed(now time.Time, f *upstream.Failure) {
	a.entry.redact(f)
	f.Conceal(a.sent)
	a.nextKey = a.turn.failed(f)
	a.entry.stats.metrics.failed(f)
	if a.origin.Job {
		f = unprobedJob(f)
	}
	a.judged(a.entry.stats.Failed(now, a.origin, f))
}

// judged tells what a failure has changed, and wakes the prober if a question is put.
func (a *Attempt) judged(changes []health.Change) {
	a.lines.found(a.entry, changes)
	if a.entry.stats.Doubtful() {
		a.lines.wake()
	}
}

// unprobedJob is the failure of a job. No probe can prove what a job met: where it
// is unproven that credential or model do not work, it is a failure like another
// unproven one.
func unprobedJob(f *upstream.Failure) *upstream.Failure {
	out := *f
	switch f.Health {
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		if f.Unproven {
			out.Health = upstream.HealthFail
		}
	}
	return &out
}

// JobFailed is Failed for a trouble of the attempt's job: the credential is gone
// from all that t says.
func (a *Attempt) JobFailed(t *upstream.JobFailure) { a.Failed(t.Redact(a.entry.secrets()...).Failure) }

// Broke tells that an answer which had begun broke off, so that the attempt no
// longer counts as a good one. Calls after the first do nothing. A client that
// left is no failure of the line: its health effect is none. The line's
// credential, should the provider have repeated it, is gone from f afterwards,
// so call it before f is shown to anybody.
func (a *Attempt) Broke(f *upstream.Failure) {
	a.entry.redact(f)
	f.Conceal(a.sent)
	if f.Health == upstream.HealthNone || !a.good || a.broken.Swap(true) {
		return
	}
	a.turn.failed(f)
	s := a.entry.stats
	s.metrics.broke(f)
	now := a.lines.now()
	a.judged(s.Broke(now, a.origin, a.number, f))
}

// Settled counts what a request came to that the line has answered.
func (a *Attempt) Settled(s Settlement) { a.entry.stats.settled(a.origin.Model, s) }

// Waste notes tokens of an attempt whose answer nobody got.
func (r *AttemptRecord) Waste(a *Attempt, m *catalog.Model, t upstream.TokenCounts) {
	r.TokenCounts, r.LineCost = t, a.costOf(m, t)
	a.entry.stats.settled(m.ID, Settlement{LineCost: r.LineCost})
}

// AttemptRecord is what the request log keeps of one attempt.
type AttemptRecord struct {
	Line string `json:"line"`
	// Skipped says why the line was not asked, in a word; the lines that were
	// skipped are kept of requests that no line was asked for.
	Skipped string `json:"skipped,omitempty"`
	// Status is the provider's HTTP status; 0 when no head arrived.
	Status int `json:"status,omitempty"`
	// Code is the service's code for a failure; empty on success.
	Code string `json:"code,omitempty"`
	// Ignored are fields of the request that the line did not get, since no reference
	// documents them: a bounded number of names, separated by commas.
	Ignored string `json:"ignored,omitempty"`
	// Cause is for the operator, at most a few hundred bytes.
	Cause string `json:"cause,omitempty"`
	// Tokens are what the attempt used at the provider and the request's own
	// tokens do not contain: those of an attempt whose answer nobody got.
	upstream.TokenCounts
	// LineCost is what the provider takes for the attempt; nil: nobody knows.
	LineCost *money.Amount `json:"line_cost_usd,omitempty"`
	// FirstByteMS is the time until the answer had begun; 0 if it never did.
	FirstByteMS int64 `json:"first_byte_ms"`
	// DurationMS is the time until the attempt had failed or the answer had
	// begun; who streams the answer may set it to the whole time.
	DurationMS int64 `json:"duration_ms"`
}

// CostOf is what the providers of attempts take in all; nil: nobody knows.
func CostOf(attempts []AttemptRecord) (sum *money.Amount) {
	for _, a := range attempts {
		sum = money.PlusKnown(sum, a.LineCost)
	}
	return sum
}
