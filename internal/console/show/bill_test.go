package show_test

import (
	"bytes"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/console/show"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// TestBillAddsUp checks that the lines of a receipt add up to the charge, including charges other
// than tokens. If the lines cannot explain the charge, they must be counts without prices.
func TestBillAddsUp(t *testing.T) {
	t.Parallel()
	doc, _, err := catalog.Parse([]byte(`models:
  - {id: chat, kind: chat, context_window: 400000, max_output_tokens: 1000, price: {input: 0.25, output: 2, cached_input: 0.025,
      above: [{prompt_tokens: 200000, input: 0.5, output: 3}]}}
  - {id: image, kind: image, price: {1K: 0.03, 2K: 0.05}}
  - {id: same, kind: image, price: {1K: 0.03, 2K: 0.03}}
  - {id: clip, kind: video, price: {720p: 0.05}, durations: [5]}
  - {id: whole, kind: video, per_clip: {720p: 0.4}}
`), app.Providers())
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*catalog.Model{}
	for i := range doc.Models {
		models[doc.Models[i].ID] = &doc.Models[i]
	}
	cost := func(n ledger.Tokens, factor money.Factor) money.Amount {
		return models["chat"].Cost(wire.Usage{Prompt: n.Prompt, Cached: n.Cached, Completion: n.Completion}, catalog.Pricing{Factor: factor})
	}
	short, long := ledger.Tokens{Prompt: 1200, Cached: 200, Completion: 310}, ledger.Tokens{Prompt: 300_000, Completion: 10}
	const tenOff = money.Factor(900_000)
	for name, test := range map[string]struct {
		model string
		r     requestlog.Receipt
		want  string
	}{
		"tokens": {"chat", requestlog.Receipt{Tokens: short, Cost: cost(short, 0)}, "Prompt,\"1,000 tokens\",$0.25 per million,0.00025\n" +
			"Prompt from the cache,200 tokens,$0.025 per million,0.000005\nAnswer,310 tokens,$2.00 per million,0.00062\n"},
		"long prompt": {"chat", requestlog.Receipt{Tokens: long, Cost: cost(long, 0)},
			"Prompt,\"300,000 tokens\",$0.50 per million,0.15\nAnswer,10 tokens,$3.00 per million,0.00003\n"},
		"account with a discount": {"chat", requestlog.Receipt{Tokens: short, Factor: tenOff, Cost: cost(short, tenOff)},
			"Prompt,\"1,000 tokens\",$0.225 per million,0.000225\nPrompt from the cache,200 tokens,$0.0225 per million,0.0000045\n" +
				"Answer,310 tokens,$1.80 per million,0.000558\n"},
		"with a tool": {"chat", requestlog.Receipt{Tokens: short, Cost: cost(short, 0) + money.USD},
			"Prompt,\"1,000 tokens\",$0.25 per million,0.00025\nPrompt from the cache,200 tokens,$0.025 per million,0.000005\n" +
				"Answer,310 tokens,$2.00 per million,0.00062\n\"Cache writes, tools and options\",–,–,1\n"},
		"above the hold": {"chat", requestlog.Receipt{Tokens: short, Cost: cost(short, 0) - 1000, Over: 1000},
			"Prompt,\"1,000 tokens\",$0.25 per million,0.00025\nPrompt from the cache,200 tokens,$0.025 per million,0.000005\n" +
				"Answer,310 tokens,$2.00 per million,0.00062\n\"Above the reserved amount, not charged\",–,–,-0.000001\n"},
		"at a cheaper tier": {"chat", requestlog.Receipt{Tokens: short, Cost: cost(short, 0) / 2},
			"Prompt,\"1,200 tokens\",–,–\nof these from the cache,200 tokens,–,–\nAnswer,310 tokens,–,–\n"},
		"images": {"image", requestlog.Receipt{Quantity: measure.Quantity{Unit: measure.Image, N: 2}, Cost: money.USD / 10},
			"2K,2 images,$0.05 per image,0.1\n"},
		"tiers with equal prices": {"same", requestlog.Receipt{Quantity: measure.Quantity{Unit: measure.Image, N: 1}, Cost: 3 * money.USD / 100},
			"Images,1 image,–,–\n"},
		"seconds": {"clip", requestlog.Receipt{Quantity: measure.Quantity{Unit: measure.VideoMS, N: 5000}, Cost: money.USD / 4},
			"720p,5 seconds,$0.05 per second,0.25\n"},
		"clips": {"whole", requestlog.Receipt{Quantity: measure.Quantity{Unit: measure.VideoMS}, Cost: 4 * money.USD / 10},
			"720p,1 clip,$0.40 per clip,0.4\n"},
		"seconds without a price": {"gone", requestlog.Receipt{Quantity: measure.Quantity{Unit: "sound_ms", N: 1500}, Cost: 7},
			"Seconds of sound,2 seconds of sound,–,–\n"},
		"tiles without a price": {"gone", requestlog.Receipt{Quantity: measure.Quantity{Unit: "tile", N: 1200}, Cost: 7},
			"Tiles,\"1,200 tiles\",–,–\n"},
		"unknown model": {"gone", requestlog.Receipt{Tokens: ledger.Tokens{Prompt: 3}, Cost: 7}, "Prompt,3 tokens,–,–\n"},
		"no tokens":     {"chat", requestlog.Receipt{}, ""},
	} {
		var got bytes.Buffer
		bill := show.Bill(test.r, models[test.model])
		if err := bill.CSV(&got, false); err != nil || got.String() != test.want {
			t.Errorf("%s: error %v, bill\n%s\nwant\n%s", name, err, got.String(), test.want)
		}
	}
}
