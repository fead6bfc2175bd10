package catalog

import (
	"math"

	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// ChargeBounds returns the lowest and the highest possible result of Cost for the counts of a
// receipt. The bounds are equal unless the price depends on something missing in a receipt:
// options, cache writes, modalities, hosted tools.
func (m *Model) ChargeBounds(prompt, cached, completion int64, accountFactor money.Factor) (low, high money.Amount) {
	if m.Kind.Definition() != nil {
		cost := m.UnitCost(kind.Quantities{kind.Input: prompt}, accountFactor)
		return cost, cost
	}
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
