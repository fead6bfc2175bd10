package line

import (
	"errors"
	"slices"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/line/health"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire"
)

// Candidate is a line for a request or a job.
type Candidate struct {
	Line *catalog.Line
	// ProviderModel is the provider's name of the model.
	ProviderModel string
	// Form is the wire form of the calls to the line. It is empty for jobs.
	Form wire.Form
	// Generator generates the results of jobs. It is nil for the candidate of a request.
	Generator jobcall.Generator
	// HalfOpen is true if the line is half-open. A half-open line gets one attempt at a time while
	// other lines can take the rest.
	HalfOpen bool

	lines  *Lines
	entry  *routingEntry
	origin health.Origin
}

// Source identifies the provider and model of the line's answers.
func (c *Candidate) Source() upstream.Source {
	return upstream.Source{Provider: c.Line.Provider, BaseURL: c.Line.BaseURL, Model: c.ProviderModel}
}

// refusedField identifies a field that the gateway added to requests and a model refused. model is
// the provider's name of the model.
type refusedField struct{ model, field string }

// RefusesField reports whether the model refused a field added by the gateway. field is the path in
// the line's form.
func (c *Candidate) RefusesField(field string) bool {
	return c.entry != nil && c.entry.refusesField(c.ProviderModel, field)
}

func (e *routingEntry) refusesField(providerModel, field string) bool {
	_, refuses := e.stats.refusedFields.Load(refusedField{providerModel, field})
	return refuses
}

// LearnRefusal records that the model refuses a field added by the gateway. The gateway then omits
// the field until the node stops, the line changes its provider, or the operator resumes the line.
func (c *Candidate) LearnRefusal(field string) {
	refused := &c.entry.stats.refusedFields
	for _, limit := range catalog.LimitFields() {
		if other := limit.Other(); field == string(limit) {
			refused.Delete(refusedField{c.ProviderModel, string(other)}) // a model accepts at least one of the two fields
		}
	}
	refused.Store(refusedField{c.ProviderModel, field}, nil)
	c.lines.log.Info("line: a model rejected a field that the gateway adds; the gateway now omits it", "line", c.Line.ID,
		"model", c.ProviderModel, "field", field)
}

// LimitField returns the name of the model's field for the output limit. It is
// catalog.Line.LimitFieldFor, or the other limit field if the model refused the first.
func (c *Candidate) LimitField(m *catalog.Model) catalog.LimitField {
	if c.entry == nil {
		return c.Line.LimitFieldFor(m)
	}
	return c.entry.limitField(m)
}

func (e *routingEntry) limitField(m *catalog.Model) catalog.LimitField {
	field := e.line.LimitFieldFor(m)
	for _, limit := range catalog.LimitFields() {
		if (field == "" || field == limit) && e.refusesField(e.line.Models[m.ID], string(limit)) {
			return limit.Other()
		}
	}
	return field
}

// UnavailableLine is a line that takes no jobs now.
type UnavailableLine struct {
	Line string
	// Soon is true if the line is cooling or half-open, so that it returns by itself.
	Soon   bool
	Reason string // a value of Status.State
}

// AnyAccount stands for an account without failures of its own.
const AnyAccount = "any account"

// Candidates returns the lines that now take an account's jobs for a model, lowest priority first,
// and the unavailable lines. A failure of one account's jobs blocks the line only for this account.
// Candidates ignores slots; see slot.FreeTx.
func (l *Lines) Candidates(s *catalog.Snapshot, model, account string) ([]*Candidate, []UnavailableLine) {
	var candidates []*Candidate
	var unavailable []UnavailableLine
	for _, entry := range l.table(s).byModel[model] {
		c, reason := l.candidate(entry, model, account)
		if reason != "" {
			soon := reason == health.StateCooling || reason == health.StateHalfOpen
			unavailable = append(unavailable, UnavailableLine{Line: entry.line.ID, Reason: reason, Soon: soon})
			continue
		}
		candidates = append(candidates, c)
	}
	return candidates, unavailable
}

// candidate returns a line for an account's job of a model, or the reason why the line takes no job.
func (l *Lines) candidate(entry *routingEntry, model, account string) (_ *Candidate, reason string) {
	ln, s := entry.line, entry.stats
	generator := l.generatorOf(entry)
	switch {
	case ln.UnusableReason != "" || generator == nil:
		return nil, stateOutOfService
	case s.drained.Load():
		return nil, stateDrained
	}
	origin := health.Origin{LinePart: health.LinePart{Model: model}, Account: account}
	reason, generation, isHalfOpen := s.Admit(l.now, origin, false)
	if reason != "" {
		return nil, reason
	}
	if isHalfOpen {
		s.EndHalfOpen() // Begin begins the half-open attempt
	}
	c := newCandidate(l, entry, generator, model, generation)
	c.HalfOpen = isHalfOpen
	return c, ""
}

// newCandidate returns the candidate of a line for a model's jobs.
func newCandidate(l *Lines, entry *routingEntry, generator jobcall.Generator, model string, generation uint64) *Candidate {
	return &Candidate{
		Line: entry.line, Generator: generator, ProviderModel: entry.line.Models[model],
		lines: l, entry: entry, origin: health.Origin{LinePart: health.LinePart{Model: model}, Generation: generation},
	}
}

// CandidateFor returns the line for a job that was already submitted there, whatever the line's state.
// It returns nil if the snapshot lacks the line or this node has no generator for the line.
func (l *Lines) CandidateFor(s *catalog.Snapshot, line, model string) *Candidate {
	entries := l.table(s).entries
	i := slices.IndexFunc(entries, func(entry *routingEntry) bool { return entry.line.ID == line })
	if i < 0 {
		return nil
	}
	entry := entries[i]
	if newest := l.newestOf(entry); entry.line.UnusableReason != "" && newest != nil {
		entry = newest // the line of this snapshot has lost its key; use the current one
	}
	generator := l.generatorOf(entry)
	if generator == nil || entry.line.UnusableReason != "" {
		return nil
	}
	return newCandidate(l, entry, generator, model, entry.stats.Generation())
}

// Takes reports whether the line takes the account's jobs now. c must be a candidate for
// AnyAccount.
func (c *Candidate) Takes(account string) bool {
	_, reason := c.lines.candidate(c.entry, c.origin.Model, account)
	return reason == ""
}

// Begin begins an attempt of an account's job. The caller must call End.
func (c *Candidate) Begin(account string) *Attempt {
	a := &Attempt{Candidate: *c}
	a.origin.Account, a.origin.Job = account, true
	if c.HalfOpen {
		c.entry.stats.BeginHalfOpen()
	}
	a.begin()
	return a
}

// UnusableFailure returns the failure of a line without an adapter on this node.
func UnusableFailure(kind string) *upstream.JobFailure {
	f := upstream.Fail(fault.UpstreamUnavailable, errors.New("the line cannot be used on this node"))
	t := upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	t.Health = upstream.HealthNone
	if kind == upstream.KindVideo {
		t.Job = fault.UpstreamUnstable
	}
	return t
}

// Order returns the candidates in the order of attempts for one job: lower priority first, then by
// weight.
func (l *Lines) Order(candidates []*Candidate, job string) []*Candidate {
	entries := make([]*routingEntry, len(candidates))
	byEntry := make(map[*routingEntry]*Candidate, len(candidates))
	for i, c := range candidates {
		entries[i], byEntry[c.entry] = c.entry, c
	}
	var buf [4]rankedLine
	out := make([]*Candidate, 0, len(candidates))
	for _, c := range order(buf[:0], entries, wire.Hash(job)) {
		out = append(out, byEntry[c.entry])
	}
	return out
}
