package line

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// Margin is what a model on a line has brought and taken since a node began.
// Sums end at money.Max, and margins at -money.Max too: a provider may tell any
// counts.
type Margin struct {
	Model string `json:"model"`
	// Settled counts the requests and jobs that the line has answered and that
	// were charged, if only nothing; Charged is what for.
	Settled int64        `json:"settled"`
	Charged money.Amount `json:"charged_usd"`
	// OverHolds counts those of them whose usage was above their hold; Over is by
	// how much, which nobody was charged.
	OverHolds int64        `json:"over_holds"`
	Over      money.Amount `json:"over_hold_usd"`
	// LineCost is what the line's provider takes, as far as that is known, failed
	// attempts included. Margin is what was charged for the same less that. nil:
	// nothing is known.
	LineCost *money.Amount `json:"line_cost_usd"`
	Margin   *money.Amount `json:"margin_usd"`
}

// Settlement is what a request, a job or a failed attempt came to on a line.
type Settlement struct {
	// Answered says that the line did what it was asked, and that somebody was
	// charged for it, if only nothing.
	Answered bool
	// Cost is that of its usage. Held is what was held for it: nobody is charged
	// more.
	Cost, Held money.Amount
	// LineCost is what the line's provider takes; nil: nobody knows.
	LineCost *money.Amount
}

// margin returns what the settlement adds to its model's.
func (s Settlement) margin(model string) Margin {
	m := Margin{Model: model}
	if s.Answered {
		m.Settled, m.Charged = 1, min(s.Cost, s.Held)
		if s.Cost > s.Held {
			m.OverHolds, m.Over = 1, s.Cost-s.Held
		}
	}
	if s.LineCost != nil {
		left := m.Charged - *s.LineCost
		m.LineCost, m.Margin = s.LineCost, &left
	}
	return m
}

// add adds up two margins of a model.
func (m *Margin) add(n Margin) {
	m.Settled += n.Settled
	m.Charged = sum(m.Charged, n.Charged)
	m.OverHolds += n.OverHolds
	m.Over = sum(m.Over, n.Over)
	m.LineCost, m.Margin = sumKnown(m.LineCost, n.LineCost), sumKnown(m.Margin, n.Margin)
}

// sum adds two amounts, within money.Max.
func sum(a, b money.Amount) money.Amount {
	within := func(a money.Amount) money.Amount { return max(-money.Max, min(a, money.Max)) }
	return within(within(a) + within(b))
}

// sumKnown adds two amounts, either of which may not be known.
func sumKnown(a, b *money.Amount) *money.Amount {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	both := sum(*a, *b)
	return &both
}

// margins are those of a line's models. They are safe for concurrent use.
type margins struct {
	mu      sync.Mutex
	byModel map[string]Margin
}

// add adds to a model's.
func (m *margins) add(n Margin) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.byModel == nil {
		m.byModel = make(map[string]Margin)
	}
	all := m.byModel[n.Model]
	all.Model = n.Model
	all.add(n)
	m.byModel[n.Model] = all
}

// all returns them in the order of the models' ids.
func (m *margins) all() []Margin {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.byModel), func(a, b Margin) int { return cmp.Compare(a.Model, b.Model) })
}

// keep drops those of models that a line does not have any more.
func (m *margins) keep(ln *catalog.Line) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.byModel, func(model string, _ Margin) bool {
		_, has := ln.Models[model]
		return !has
	})
}

// joinMargins adds up what nodes say, in the order of the models' ids.
func joinMargins(nodes []OnNode) []Margin {
	var all margins
	for _, n := range nodes {
		for _, m := range n.Margins {
			all.add(m)
		}
	}
	return all.all()
}
