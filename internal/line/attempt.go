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
	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// Attempt is one attempt of a request or job on a line. Until End, the attempt is in flight and
// occupies its slot and its place on a half-open line. An attempt of a request ends by itself when
// it fails or when the body of its answer is closed.
type Attempt struct {
	Candidate

	selector      keySelector // for requests; a job's generator selects its key
	nextKey       bool        // whether to retry with the next key of selector
	hasSlot       bool
	start         time.Time
	ended         atomic.Bool
	placeReleased atomic.Bool // whether the place on a half-open line was released

	requestBody   rawjson.Pieces // the body of the call
	body          io.ReadCloser  // nil before the answer
	ignoredFields string         // fields of the request withheld from the line
	sample        uint64         // number of the attempt's sample in the stats
	answered      bool           // whether the attempt was answered
	broken        atomic.Bool
}

// Chat makes the last call of the attempt. It implements chatcall.Adapter.
func (a *Attempt) Chat(ctx context.Context, call chatcall.Call) (*chatcall.Response, error) {
	a.requestBody = call.Body
	answer, err := a.selector.key.adapter.Chat(ctx, call)
	if err != nil {
		return nil, err
	}
	a.body = answer.Body
	answer.Body = (*attemptBody)(a)
	return answer, nil
}

// ChatPart is like Chat for a call before the last call of the attempt: closing the answer of ChatPart
// does not end the attempt.
func (a *Attempt) ChatPart(ctx context.Context, call chatcall.Call) (*chatcall.Response, error) {
	a.requestBody = call.Body
	return a.selector.key.adapter.Chat(ctx, call)
}

// MaxInputs returns the maximum number of inputs of a call in a form, the lower limit of the line and of
// its provider. Zero means no limit.
func (a *Attempt) MaxInputs(form wire.Form) int64 {
	most := a.Line.MaxInputs
	if p, ok := a.selector.key.adapter.(chatcall.InputLimiter); ok {
		if n := p.MaxInputs(form, a.ProviderModel); n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most
}

// RecordGatewayCount counts a complete answer whose usage the gateway had to count itself.
func (a *Attempt) RecordGatewayCount() {
	s := a.entry.stats
	s.gatewayCounts.Add(1)
	s.metrics.metrics.gatewayCounts.WithLabelValues(a.Line.ID).Inc()
}

// Ignore records the number of fields withheld from the line and their names for the request log.
func (a *Attempt) Ignore(fields int, names string) {
	if a.ignoredFields = names; fields > 0 {
		a.entry.stats.metrics.metrics.ignoredFields.WithLabelValues(a.Line.ID).Add(float64(fields))
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

// begin counts the attempt as in flight.
func (a *Attempt) begin() {
	s := a.entry.stats
	s.inFlight.Add(1)
	s.metrics.inFlight.Inc()
	a.start = a.lines.now()
}

// End releases the attempt's slot and place. Only the first call has an effect.
func (a *Attempt) End() {
	if a.ended.Swap(true) {
		return
	}
	s := a.entry.stats
	s.inFlight.Add(-1)
	s.metrics.inFlight.Dec()
	a.releasePlace()
	if a.hasSlot {
		a.lines.slots.Give(a.Line.ID)
	}
}

// releasePlace releases the place on a half-open line.
func (a *Attempt) releasePlace() {
	if a.HalfOpen && !a.placeReleased.Swap(true) {
		a.entry.stats.EndHalfOpen()
	}
}

// RecordSuccess records that the answer has begun, or that the line accepted the job.
func (a *Attempt) RecordSuccess() { a.recordSuccess(a.lines.now()) }

func (a *Attempt) recordSuccess(now time.Time) {
	s, elapsed := a.entry.stats, now.Sub(a.start)
	n, changes := s.RecordAnswer(now, a.origin, elapsed)
	a.sample, a.answered = n, true
	a.selector.recordAnswer()
	if a.origin.Job { // a job runs for minutes, so its acceptance decides about the half-open line
		a.releasePlace()
	}
	s.metrics.countAnswer(elapsed)
	a.lines.publish(a.entry, changes)
}

// RecordFailure records that the attempt failed. It redacts the line's credentials in f, and
// provider messages that may repeat the request.
func (a *Attempt) RecordFailure(f *upstream.Failure) { a.recordFailure(a.lines.now(), f) }

func (a *Attempt) recordFailure(now time.Time, f *upstream.Failure) {
	a.entry.redact(f)
	f.Conceal(a.requestBody)
	a.nextKey = a.selector.recordFailure(f)
	a.entry.stats.metrics.countFailure(f)
	if a.origin.Job {
		f = jobFailure(f)
	}
	a.reportChanges(a.entry.stats.RecordFailure(now, a.origin, f))
}

// reportChanges reports the changes after a failure and wakes the prober for a new doubt.
func (a *Attempt) reportChanges(changes []health.Change) {
	a.lines.publish(a.entry, changes)
	if a.entry.stats.Doubtful() {
		a.lines.wake()
	}
}

// jobFailure returns f as the failure of a job. Probes cannot repeat a job, so an unproven failure
// of credential, model or form counts as an ordinary failure.
func jobFailure(f *upstream.Failure) *upstream.Failure {
	out := *f
	switch f.Health {
	case upstream.HealthCredential, upstream.HealthModel, upstream.HealthForm:
		if f.Unproven {
			out.Health = upstream.HealthFail
		}
	}
	return &out
}

// RecordJobFailure records a failed job attempt and redacts the line's credentials in t.
func (a *Attempt) RecordJobFailure(t *upstream.JobFailure) {
	a.RecordFailure(t.Redact(a.entry.secrets()...).Failure)
}

// RecordBreak records that an answer broke off, so that the attempt no longer counts as good. Only
// the first call has an effect. If the client disconnected, f.Health must be HealthNone and the
// line is not blamed. RecordBreak redacts the line's credentials in f and must be called before f
// is shown.
func (a *Attempt) RecordBreak(f *upstream.Failure) {
	a.entry.redact(f)
	f.Conceal(a.requestBody)
	if f.Health == upstream.HealthNone || !a.answered || a.broken.Swap(true) {
		return
	}
	a.selector.recordFailure(f)
	s := a.entry.stats
	s.metrics.countBreak(f)
	now := a.lines.now()
	a.reportChanges(s.RecordBreak(now, a.origin, a.sample, f))
}

// RecordSettlement adds the settlement of an answered request to the model's margin.
func (a *Attempt) RecordSettlement(s Settlement) { a.entry.stats.addSettlement(a.origin.Model, s) }

// RecordWaste records the tokens of an attempt without a delivered answer, and their cost.
func (r *AttemptRecord) RecordWaste(a *Attempt, m *catalog.Model, t upstream.TokenCounts) {
	r.TokenCounts, r.LineCost = t, a.costOf(m, t)
	a.entry.stats.addSettlement(m.ID, Settlement{LineCost: r.LineCost})
}

// AttemptRecord is the record of one attempt in the request log.
type AttemptRecord struct {
	Line string `json:"line"`
	// Skipped is the reason for skipping the line. Skipped lines are recorded only for requests
	// without any attempt.
	Skipped string `json:"skipped,omitempty"`
	// Status is the provider's HTTP status, or 0 if no header was received.
	Status int `json:"status,omitempty"`
	// Code is the gateway's code for a failure; empty on success.
	Code string `json:"code,omitempty"`
	// Ignored lists request fields withheld from the line because no reference documents them: a
	// bounded number of names, separated by commas.
	Ignored string `json:"ignored,omitempty"`
	// Cause is for the operator, at most a few hundred bytes.
	Cause string `json:"cause,omitempty"`
	// TokenCounts has the tokens of an attempt without a delivered answer. The request's own tokens
	// do not include them.
	upstream.TokenCounts
	// LineCost is the provider's charge for the attempt, or nil if unknown.
	LineCost *money.Amount `json:"line_cost_usd,omitempty"`
	// FirstByteMS is the time until the beginning of the answer, or 0 without an answer.
	FirstByteMS int64 `json:"first_byte_ms"`
	// DurationMS is the time until the attempt failed or the answer began. A streaming caller may
	// set it to the total time.
	DurationMS int64 `json:"duration_ms"`
}

// CostOf returns the providers' total charge for the attempts, or nil if unknown.
func CostOf(attempts []AttemptRecord) (sum *money.Amount) {
	for _, a := range attempts {
		sum = money.PlusKnown(sum, a.LineCost)
	}
	return sum
}
