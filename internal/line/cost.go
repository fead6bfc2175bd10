package line

import (
	"time"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// A provider's reported cost is implausible if it is above implausibleFrom and more than
// implausibleTimes the answer's price in the catalog. Providers have reported cents, ticks and
// nano-dollars in a field for dollars. If the catalog has a `cost` for the line, the higher of price and
// cost is compared, because the operator may sell the model far below its cost.
const (
	implausibleTimes = 100
	implausibleFrom  = money.USD

	// warnEvery is the minimum time between two warnings about a line's implausible costs.
	warnEvery = time.Hour
)

// CostOf returns the provider's charge for a usage, from the provider's report or else from the
// catalog, or nil if the charge is unknown. s holds the prices and is only needed for a usage with
// iterations. If the reported cost is implausible, CostOf counts and logs the report and returns
// nil.
func (a *Attempt) CostOf(s *catalog.Snapshot, m *catalog.Model, u wire.Usage, c catalog.Pricing) *money.Amount {
	cost, known := s.LineCost(a.Line, m, u, c)
	if !known {
		return nil
	}
	if u.HasCost {
		c.Factor, u.HasCost = 0, false
		u.Prompt, u.Completion = min(u.Prompt, m.ContextWindow), min(u.Completion, m.MaxOutputTokens) // the token counts may be wrong too
		value := s.Cost(a.Line, m, u, c)
		if catalogCost, ok := s.LineCost(a.Line, m, u, c); ok {
			value = max(value, catalogCost)
		}
		if !a.lines.plausible(a.entry.stats, a.Line.ID, m.ID, cost, value) {
			return nil
		}
	}
	return &cost
}

// PlausibleCost reports whether the reported cost of a job is plausible. value is the job's price
// in the catalog. PlausibleCost counts and logs an implausible cost.
func (l *Lines) PlausibleCost(line, model string, reported, value money.Amount) bool {
	l.mu.Lock()
	s := l.stats[line]
	l.mu.Unlock()
	return s == nil || l.plausible(s, line, model, reported, value)
}

// plausible is PlausibleCost for a line with known stats.
func (l *Lines) plausible(s *stats, line, model string, reported, value money.Amount) bool {
	if reported <= implausibleFrom || reported/implausibleTimes <= value {
		return true
	}
	l.metrics.implausibleCosts.WithLabelValues(line).Inc()
	now := l.now().UnixMilli()
	if last := s.warnedMS.Load(); (last == 0 || now-last >= warnEvery.Milliseconds()) && s.warnedMS.CompareAndSwap(last, now) {
		l.log.Warn("line: the provider reports a cost that cannot be true; the cost is recorded as unknown. "+
			"Check the unit of its usage.cost, or set the line's cost in the catalog", "line", line, "model", model,
			"reported_usd", reported.String(), "worth_usd", value.String())
	}
	return false
}

// costOf is CostOf for the tokens of an attempt without a delivered answer.
func (a *Attempt) costOf(m *catalog.Model, t upstream.TokenCounts) *money.Amount {
	return a.CostOf(nil, m, wire.Usage{Prompt: t.Prompt, Cached: t.Cached, Completion: t.Completion, CostNano: t.CostNano,
		HasCost: t.CostNano > 0}, catalog.Pricing{})
}
