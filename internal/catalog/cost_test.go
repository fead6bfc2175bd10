package catalog

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// TestLineCost checks the cost at the provider for chat, image and video models, with prices from
// the catalog and from the answer.
func TestLineCost(t *testing.T) {
	t.Parallel()
	const text = `
models:
- {id: a, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 5, output: 9}}
- {id: b, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 5, output: 9}}
- {id: c, kind: image, max_images: 4, price: {1K: 1, 2K: 2}}
- {id: d, kind: video, durations: [5], price: {720p: 1, 1080p: 2}}
lines:
- {id: rates, provider: sandbox, models: {a: x, b: y, c: z, d: w}, cost: {input: 1, output: 2, 1K: 0.5,
  b: {input: 3, output: 4, cached_input: 0}, d: 0.25}}
- {id: plain, provider: sandbox, models: {a: x, c: z}}
- {id: tiers, provider: sandbox, models: {a: x, c: z}, cost: {c: {2K: 0.125}}}
`
	doc := mustParse(t, text)
	again, _, err := Parse(doc.YAML(), testProviders())
	if err != nil || !Equal(doc, again) {
		t.Fatalf("the catalog reads back with error %v and other values: %s", err, doc.YAML())
	}
	s := NewSnapshot(1, again, testProviders(), environment(nil))
	usage := wire.Usage{Prompt: 1000, Cached: 400, Completion: 100}
	withCost := usage
	withCost.CostNano, withCost.HasCost = 77, true
	image, clip := Plan{Tier: "1K", Count: 3}, Plan{Tier: "1080p", Count: 1, Seconds: 5}
	for i, test := range []struct {
		line      int
		model     string
		usage     wire.Usage
		plan      Plan
		delivered int64
		want      money.Amount // -1 if unknown
	}{
		{model: "a", usage: usage, want: 1_200_000},
		{model: "b", usage: usage, want: 2_200_000},
		{model: "a", usage: withCost, want: 77},
		{model: "a", want: -1},
		{line: 1, model: "a", usage: usage, want: -1},
		{line: 1, model: "a", usage: withCost, want: 77},
		{line: 2, model: "a", usage: usage, want: -1},
		{model: "c", plan: image, delivered: 2, want: money.USD},
		{model: "c", plan: Plan{Tier: "2K", Count: 1}, delivered: 1, want: -1},
		{line: 2, model: "c", plan: Plan{Tier: "2K", Count: 1}, delivered: 1, want: money.USD / 8},
		{line: 1, model: "c", plan: image, delivered: 2, want: -1},
		{model: "d", plan: clip, delivered: 1, want: 5 * money.USD / 4},
	} {
		m, _ := s.Model(test.model)
		got, ok := s.AllLines()[test.line].Cost(m, test.usage)
		if m.Kind != KindChat {
			got, ok = s.AllLines()[test.line].PlanCost(m, test.plan, test.delivered)
		}
		if !ok {
			got = -1
		}
		if got != test.want {
			t.Errorf("case %d, model %s: cost %s, want %s", i, test.model, got, test.want)
		}
	}
}

// TestCostWarnings checks the warnings about prices below the provider's prices.
func TestCostWarnings(t *testing.T) {
	t.Parallel()
	const models = `models:
  - {id: swift-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000, price: {input: 1, output: 2, cached_input: 0.1}}
  - {id: gift-1, kind: chat, forms: [chat], context_window: 8000, max_output_tokens: 1000,
    price: {input: 0, output: 0}, free_daily_requests: 5}
  - {id: easel-1, kind: image, price: {1K: 0.03, 2K: 0.05}}
lines:
  - {id: main, provider: sandbox, models: {swift-1: a, gift-1: b, easel-1: c}, %s}
`
	for line, want := range map[string]string{
		`cost: {input: 0.5, output: 2, cached_input: 0.1}`:                         "",
		`cost: {input: 1, output: 2, cached_input: 0.1, cache_write: 1.25}`:        "cache_write 1 < 1.25 USD, cache_write_1h 1 < 1.25 USD",
		`cost: {input: 1, output: 2, cached_input: 0.1, cache_write_1h: 2}`:        "cache_write_1h 1 < 2 USD",
		`cost: {input: 0.5, output: 2.5, cached_input: 0.1}`:                       "output 2 < 2.5 USD",
		`cost: {input: 3, output: 9}`:                                              "input 1 < 3 USD, output 2 < 9 USD, cached_input 0.1 < 3 USD",
		`cost: {input: 1, output: 2}`:                                              "cached_input 0.1 < 1 USD",
		`cost: {input: 3, output: 9}, enabled: false`:                              "",
		`cost: {1K: 0.01, 2K: 0.06}`:                                               "2K 0.05 < 0.06 USD",
		`cost: {easel-1: 0.04}`:                                                    "1K 0.03 < 0.04 USD",
		`cost: {swift-1: {input: 1, output: 2, cached_input: 0.2}, easel-1: 0.03}`: "cached_input 0.1 < 0.2 USD",
	} {
		_, warnings, err := Parse(fmt.Appendf(nil, models, line), testProviders())
		if err != nil {
			t.Errorf("%s: error %v, want none", line, err)
			continue
		}
		var got []string
		for _, w := range warnings {
			if _, prices, ok := strings.Cut(w.Message, "is sold below the cost of line main: "); ok && w.Path == "lines[0].cost" {
				got = append(got, prices)
			}
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: got warnings %q, want %q", line, got, want)
		}
	}
}
