package line

import (
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// A provider's reported cost is implausible if it is above implausibleFrom and above
// implausibleTimes the catalog's value of the answer. Providers have reported cents, ticks and
// nano-dollars in a field of dollars. A line sold at a hundredth of its cost sets `cost` in the
// catalog; the higher of this cost and the value is the measure.
const (
	implausibleTimes = 100
	implausibleFrom  = money.USD

	// warnEvery is how often a line's implausible costs are logged at most.
	warnEvery = time.Hour
)

// CostOf returns the provider's charge for a usage, from the provider's report or else from the
// catalog; nil if unknown. c has the choices of the request. The snapshot s has the prices; only a
// usage with iterations needs it. An implausible report is counted and logged, and the cost is
// unknown.
func (a *Attempt) CostOf(s *catalog.Snapshot, m *catalog.Model, u wire.Usage, c catalog.Choice) *money.Amount {
	cost, known := s.LineCost(a.Line, m, u, c)
	if !known {
		return nil
	}
	if u.HasCost {
		c.Factor, u.HasCost = 0, false
		u.Prompt, u.Completion = min(u.Prompt, m.ContextWindow), min(u.Completion, m.MaxOutputTokens) // the counts may be wrong too
		worth := s.Cost(a.Line, m, u, c)
		if listed, ok := s.LineCost(a.Line, m, u, c); ok {
			worth = max(worth, listed)
		}
		if !a.lines.plausible(a.entry.stats, a.Line.ID, m.ID, cost, worth) {
			return nil
		}
	}
	return &cost
}

// PlausibleCost reports whether a provider's reported cost of a job is plausible beside the
// catalog's value. An implausible cost is counted and logged.
func (l *Lines) PlausibleCost(line, model string, reported, worth money.Amount) bool {
	l.mu.Lock()
	of := l.stats[line]
	l.mu.Unlock()
	return of == nil || l.plausible(of, line, model, reported, worth)
}

func (l *Lines) plausible(of *stats, line, model string, reported, worth money.Amount) bool {
	if reported <= implausibleFrom || reported/implausibleTimes <= worth {
		return true
	}
	l.metrics.implausible.WithLabelValues(line).Inc()
	now := l.now().UnixMilli()
	if last := of.warnedMS.Load(); (last == 0 || now-last >= warnEvery.Milliseconds()) && of.warnedMS.CompareAndSwap(last, now) {
		l.log.Warn("line: the provider reports a cost that cannot be true; it is recorded as unknown. "+
			"Check the unit of its usage.cost, or set the line's cost in the catalog", "line", line, "model", model,
			"reported_usd", reported.String(), "worth_usd", worth.String())
	}
	return false
}

// costOf is CostOf for the tokens of an attempt without a delivered answer.
func (a *Attempt) costOf(m *catalog.Model, t upstream.TokenCounts) *money.Amount {
	return a.CostOf(nil, m, wire.Usage{Prompt: t.Prompt, Cached: t.Cached, Completion: t.Completion, CostNano: t.CostNano,
		HasCost: t.CostNano > 0}, catalog.Choice{})
}
