package catalog

import (
	"math"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// TestAccountFactor checks that a factor multiplies the hold and the charge for every kind of
// model.
func TestAccountFactor(t *testing.T) {
	t.Parallel()
	withSearch := Pricing{Tools: []wire.PricedField{{Name: "web_search", MaxCalls: 2}}}
	for _, tt := range []struct {
		name   string
		factor money.Factor
		bill   func(factor money.Factor) (hold, cost money.Amount)
		hold   string
		cost   string
	}{
		{"chat", 900_000, chatBill(lark(t), 1000, 1000, Pricing{}), "", ""},
		{"chat, factor above 1", 1_300_000, chatBill(lark(t), 1000, 1000, Pricing{}), "", ""},
		{"chat, long prompt", 900_000, chatBill(lark(t), 300_000, 500, Pricing{}), "", ""},
		{"chat, hosted tool", 1_300_000, chatBill(lark(t), 1000, 500, withSearch), "", ""},
		{"images, some delivered", 1_300_000, planBill(easel(t), Plan{Tier: "2K", Count: 4}, 3), "0.26", "0.195"},
		{"images, all delivered", 1_300_000, planBill(easel(t), Plan{Tier: "2K", Count: 4}, 4), "0.26", "0.26"},
		{"price per second", 900_000, planBill(reel(t), Plan{Tier: "1080p", Seconds: 10, Count: 1}, 1), "0.81", "0.81"},
		{"price per second, a third", 333_333, planBill(reel(t), Plan{Tier: "1080p", Seconds: 10, Count: 1}, 1), "0.2999997", "0.2999997"},
		{"price per clip", 500_000, planBill(clip(t), Plan{Tier: "720p", Seconds: 30, Count: 1}, 1), "0.2", "0.2"},
		{"clip not delivered", 500_000, planBill(clip(t), Plan{Tier: "720p", Seconds: 30, Count: 1}, 0), "0.2", "0"},
	} {
		hold, cost := tt.bill(tt.factor)
		if tt.hold == "" { // the bill and its product are whole nano-dollars
			plainHold, plain := tt.bill(0)
			tt.hold, tt.cost = product(plainHold, tt.factor), product(plain, tt.factor)
		}
		if hold.String() != tt.hold || cost.String() != tt.cost {
			t.Errorf("%s times %s: hold %s and cost %s, want %s and %s", tt.name, tt.factor, hold, cost, tt.hold, tt.cost)
		}
	}
	if got := easel(t).PlanHold(Plan{Tier: "8K", Count: 1, Factor: 1}); got != math.MaxInt64 {
		t.Errorf("PlanHold for a tier without a price = %s, want the maximum", got)
	}
}

// product returns an amount times a factor. The result must be whole nano-dollars.
func product(a money.Amount, factor money.Factor) string {
	return (a * money.Amount(factor) / money.Amount(money.One)).String()
}

// chatBill returns a function for the hold and the charge of a chat request at a factor.
func chatBill(m *Model, prompt, completion int64, c Pricing) func(money.Factor) (hold, cost money.Amount) {
	u := wire.Usage{Prompt: prompt, Completion: completion, Cached: prompt / 2}
	if len(c.Tools) > 0 {
		u.ToolCalls = map[string]int64{c.Tools[0].Name: 2}
	}
	return func(factor money.Factor) (hold, cost money.Amount) {
		c.Factor = factor
		return m.HighestCost(wire.PromptBound{TextBytes: prompt}, completion, 1, c), m.Cost(u, c)
	}
}

// planBill returns a function for the hold and the charge of a plan at a factor.
func planBill(m *Model, p Plan, delivered int64) func(money.Factor) (hold, cost money.Amount) {
	return func(factor money.Factor) (hold, cost money.Amount) {
		p.Factor = factor
		return m.PlanHold(p), m.PlanCost(p, delivered)
	}
}

// TestFactorIsAppliedBeforeRounding checks that the factor multiplies fractions of a nano-dollar
// before the bill is rounded.
func TestFactorIsAppliedBeforeRounding(t *testing.T) {
	t.Parallel()
	m := &Model{Kind: KindChat, ContextWindow: 8000, MaxOutputTokens: 1000}
	m.Price.Input, m.Price.Output = 100_000, 100_000 // a tenth of a nano-dollar a token
	for _, tt := range []struct {
		tokens     int64
		factor     money.Factor
		hold, cost money.Amount // of a prompt with this number of tokens
	}{
		{4, 0, 0, 0}, {4, 1_300_000, 1, 1}, {5, 0, 1, 1}, {5, 900_000, 1, 0}, {1, money.MaxFactor, 100, 100}, {9, 1, 1, 0},
	} {
		c := Pricing{Factor: tt.factor}
		var s money.Sum
		s.Tokens(tt.tokens, m.Price.Input, money.One)
		if got := m.Cost(wire.Usage{Prompt: tt.tokens}, c); got != tt.cost {
			t.Errorf("cost of %d tokens times %s = %d nano, want %d", tt.tokens, tt.factor, got, tt.cost)
		}
		if got := s.Hold(tt.factor); got != tt.hold {
			t.Errorf("hold for %d tokens times %s = %d nano, want %d", tt.tokens, tt.factor, got, tt.hold)
		}
	}
	free := &Model{Kind: KindChat, ContextWindow: 8000, MaxOutputTokens: 1000}
	if got := free.HighestCost(wire.PromptBound{TextBytes: 100}, 100, 1, Pricing{Factor: money.MaxFactor}); got != 0 {
		t.Errorf("HighestCost of a free model = %s, want 0", got)
	}
}
