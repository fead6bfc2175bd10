package catalog

import (
	"testing"

	"tollgate/internal/money"
	"tollgate/internal/wire"
)

func TestWhatALineTakes(t *testing.T) {
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
		t.Fatalf("%v: %s", err, doc.YAML())
	}
	s := NewSnapshot(1, again, testProviders(), environment(nil))
	used := wire.Usage{Prompt: 1000, Cached: 400, Completion: 100}
	said := used
	said.CostNano, said.HasCost = 77, true
	image, clip := Plan{Tier: "1K", Count: 3}, Plan{Tier: "1080p", Count: 1, Seconds: 5}
	for i, test := range []struct {
		line      int
		model     string
		usage     wire.Usage
		plan      Plan
		delivered int64
		want      money.Amount // -1: not known
	}{
		{model: "a", usage: used, want: 1_200_000},
		{model: "b", usage: used, want: 2_200_000},
		{model: "a", usage: said, want: 77},
		{model: "a", want: -1},
		{line: 1, model: "a", usage: used, want: -1},
		{line: 1, model: "a", usage: said, want: 77},
		{line: 2, model: "a", usage: used, want: -1},
		{model: "c", plan: image, delivered: 2, want: money.USD},
		{model: "c", plan: Plan{Tier: "2K", Count: 1}, delivered: 1, want: -1},
		{line: 2, model: "c", plan: Plan{Tier: "2K", Count: 1}, delivered: 1, want: money.USD / 8},
		{line: 1, model: "c", plan: image, delivered: 2, want: -1},
		{model: "d", plan: clip, delivered: 1, want: 5 * money.USD / 4},
	} {
		m, _ := s.Model(test.model)
		got, known := s.AllLines()[test.line].Cost(m, test.usage)
		if m.Kind != KindChat {
			got, known = s.AllLines()[test.line].PlanCost(m, test.plan, test.delivered)
		}
		if !known {
			got = -1
		}
		if got != test.want {
			t.Errorf("%d: %s, want %s", i, got, test.want)
		}
	}
}
