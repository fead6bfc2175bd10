package catalog

import (
	"cmp"
	"math"
	"slices"

	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// ReceiptCounts are the counts in a receipt.
type ReceiptCounts struct {
	Prompt, Cached, Completion int64 // tokens
	Quantity                   int64 // of another unit
}

// ChargeBounds returns the lowest and the highest possible result of Cost for the counts of a
// receipt. The bounds are equal unless the price depends on something missing in a receipt:
// options, cache writes, modalities, hosted tools, or which tokens were text and which sound.
func (m *Model) ChargeBounds(n ReceiptCounts, accountFactor money.Factor) (low, high money.Amount) {
	if m.Kind.Definition() != nil {
		return m.unitChargeBounds(n, accountFactor)
	}
	prompt, cached, completion := n.Prompt, n.Cached, n.Completion
	if len(m.Price.Modalities) > 0 {
		return 0, math.MaxInt64
	}
	lowFactor, highFactor := money.One, money.One
	for _, values := range m.Price.Options {
		smallest, largest := money.One, money.One
		for _, f := range values {
			smallest, largest = min(smallest, f), max(largest, f)
		}
		lowFactor, highFactor = money.Factor(int64(lowFactor)*int64(smallest)/int64(money.One)), multiply(highFactor, largest)
	}
	rates := m.RatesFor(clamp(prompt, maxUnits))
	prompt = clamp(prompt, maxUnits)
	cached = clamp(cached, prompt)
	bill := func(input money.Price, factor money.Factor) money.Amount {
		var s money.Sum
		s.Tokens(prompt-cached, input, factor)
		s.Tokens(cached, rates.CachedInput, factor)
		s.Tokens(clamp(completion, maxUnits), rates.Output, factor)
		return s.Charge(accountFactor)
	}
	low = bill(min(rates.Input, rates.CacheWrite, rates.CacheWrite1h), lowFactor)
	high = bill(max(rates.Input, rates.CacheWrite, rates.CacheWrite1h), highFactor)
	if len(m.Price.Tools) > 0 {
		high = math.MaxInt64
	}
	return low, high
}

// unitChargeBounds is ChargeBounds for models with prices by unit.
func (m *Model) unitChargeBounds(n ReceiptCounts, accountFactor money.Factor) (low, high money.Amount) {
	measure := m.Measure()
	switch {
	case measure.Quantity != "":
		cost := m.UnitCost(kind.Quantities{measure.Units[0]: n.Quantity}, accountFactor)
		return cost, cost
	case !measure.CountsTokens():
		cost := m.UnitCost(kind.Quantities{measure.Units[0]: 1}, accountFactor)
		return cost, cost
	}
	cheapest, dearest := kind.Quantities{}, kind.Quantities{}
	for output, tokens := range map[bool]int64{false: n.Prompt, true: n.Completion} {
		if units := measure.TokenUnits(output); len(units) > 0 {
			byPrice := func(a, b kind.PriceUnit) int { return cmp.Compare(m.UnitPrice(a), m.UnitPrice(b)) }
			cheapest[slices.MinFunc(units, byPrice)] = tokens
			dearest[slices.MaxFunc(units, byPrice)] = tokens
		}
	}
	return m.UnitCost(cheapest, accountFactor), m.UnitCost(dearest, accountFactor)
}
