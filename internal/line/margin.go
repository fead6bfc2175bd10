package line

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// Margin has the charges and costs of a model on a line since the node started. All amounts are
// clamped to ±money.Max, because a provider may report any counts.
type Margin struct {
	Model string `json:"model"`
	// Settled counts the answered and charged requests and jobs, including charges of zero. Charged
	// is the sum of their charges.
	Settled int64        `json:"settled"`
	Charged money.Amount `json:"charged_usd"`
	// OverHolds counts the requests and jobs with a cost above their hold. Over adds up the costs
	// above the holds, which are not charged.
	OverHolds int64        `json:"over_holds"`
	Over      money.Amount `json:"over_hold_usd"`
	// LineCost adds up the provider's known charges, including failed attempts. Margin subtracts
	// LineCost from the charges for the same attempts. Both are nil if no cost is known.
	LineCost *money.Amount `json:"line_cost_usd"`
	Margin   *money.Amount `json:"margin_usd"`
}

// Settlement is the result of a request, a job or a failed attempt on a line.
type Settlement struct {
	// Answered is true if the line answered and the request was charged, even if the charge is
	// zero.
	Answered bool
	// Cost is the price of the usage. Held is the hold, the upper bound of the charge.
	Cost, Held money.Amount
	// LineCost is the provider's charge; nil if unknown.
	LineCost *money.Amount
}

// margin returns the settlement as a margin of its model.
func (s Settlement) margin(model string) Margin {
	m := Margin{Model: model}
	if s.Answered {
		m.Settled, m.Charged = 1, min(s.Cost, s.Held)
		if s.Cost > s.Held {
			m.OverHolds, m.Over = 1, s.Cost-s.Held
		}
	}
	if s.LineCost != nil {
		margin := m.Charged - *s.LineCost
		m.LineCost, m.Margin = s.LineCost, &margin
	}
	return m
}

// add adds n to m.
func (m *Margin) add(n Margin) {
	m.Settled += n.Settled
	m.Charged = sum(m.Charged, n.Charged)
	m.OverHolds += n.OverHolds
	m.Over = sum(m.Over, n.Over)
	m.LineCost, m.Margin = sumKnown(m.LineCost, n.LineCost), sumKnown(m.Margin, n.Margin)
}

// sum adds two amounts and clamps the result to ±money.Max.
func sum(a, b money.Amount) money.Amount {
	clamp := func(a money.Amount) money.Amount { return max(-money.Max, min(a, money.Max)) }
	return clamp(clamp(a) + clamp(b))
}

// sumKnown adds the known amounts. A nil amount is unknown.
func sumKnown(a, b *money.Amount) *money.Amount {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	total := sum(*a, *b)
	return &total
}

// margins holds the margins of a line's models. It is safe for concurrent use.
type margins struct {
	mu      sync.Mutex
	byModel map[string]Margin
}

// add adds n to the margin of its model.
func (m *margins) add(n Margin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byModel == nil {
		m.byModel = make(map[string]Margin)
	}
	total := m.byModel[n.Model]
	total.Model = n.Model
	total.add(n)
	m.byModel[n.Model] = total
}

// all returns the margins in the order of the model ids.
func (m *margins) all() []Margin {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.byModel), func(a, b Margin) int { return cmp.Compare(a.Model, b.Model) })
}

// keep deletes the margins of models missing from a line.
func (m *margins) keep(ln *catalog.Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byModel, func(model string, _ Margin) bool {
		_, has := ln.Models[model]
		return !has
	})
}

// joinMargins adds up the margins of all nodes, in the order of the models' ids.
func joinMargins(nodes []OnNode) []Margin {
	var all margins
	for _, n := range nodes {
		for _, m := range n.Margins {
			all.add(m)
		}
	}
	return all.all()
}
