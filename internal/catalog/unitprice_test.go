package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/catalog/tree"
	"tollgate/internal/money"
	"tollgate/internal/wire/kind"
)

// embeddingModel is a valid entry, but for its price.
const embeddingModel = "id: a, kind: embedding, max_inputs: 10, max_input_tokens: 20, dimensions: 30"

// TestFaultsOfUnitPrices checks that a model of a kind without a right price is refused.
func TestFaultsOfUnitPrices(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		embeddingModel:                                              "models[0].price: is required, because nothing runs without a price",
		embeddingModel + ", price: {}":                              "models[0].price: must be input in USD per million tokens",
		embeddingModel + ", price: 2":                               "models[0].price: must be a mapping of keys to values",
		embeddingModel + ", price: {output: 2}":                     "models[0].price: must be input in USD per million tokens",
		embeddingModel + ", price: {input: 1, output: 2}":           "models[0].price.output: is not a known key",
		embeddingModel + ", price: {input: 1, searches: 2}":         "models[0].price.searches: is not a known key",
		embeddingModel + ", price: {input: -1}":                     "models[0].price.input: must not be negative",
		embeddingModel + ", price: {input: much}":                   "models[0].price.input: ",
		embeddingModel + ", price: {input: 1}, context_window: 9":   "models[0].context_window: is for chat models only",
		embeddingModel + ", price: {input: 1}, max_documents: 9":    "models[0].max_documents: is not a known key",
		"id: a, kind: embedding, price: {input: 1}, max_inputs: 0":  "models[0].max_inputs: must be a whole number from 1 to",
		"id: a, kind: embedding, price: {input: 1}, dimensions: x":  "models[0].dimensions: must be a whole number from 1 to",
		"id: a, kind: moderation, price: {}":                        "must be input in USD per million tokens, or requests in USD per",
		"id: a, kind: moderation, price: {input: 1, requests: 1}":   "models[0].price: mixes million tokens and thousand requests",
		"id: a, kind: moderation, price: {searches: 1}":             "models[0].price.searches: is not a known key",
		"id: a, kind: moderation, price: {requests: -1}":            "models[0].price.requests: must not be negative",
		"id: a, kind: rerank, price: {searches: 1, input: 1}":       "models[0].price: mixes thousand searches and million tokens",
		"id: a, kind: rerank, price: {input: 1}, max_inputs: 1":     "models[0].max_inputs: is not a known key",
		"id: a, kind: rerank, price: {input: 1}, max_documents: 0":  "models[0].max_documents: must be a whole number from 1 to",
		"id: a, kind: image, price: {1K: 1}, max_inputs: 9":         "models[0].max_inputs: is not a known key",
		"id: a, kind: speech, price: {minutes: 1}":                  "models[0].max_seconds: is required with the price minutes",
		"id: a, kind: speech, price: {input: 1}":                    "models[0].price.output_audio: is required: USD per million tokens",
		"id: a, kind: speech, price: {characters: 1, minutes: 1}":   "models[0].price: mixes million characters and minute",
		"id: a, kind: speech, price: {characters: 1}, formats: [a]": "models[0].formats[0]: must be one of",
		"id: a, kind: speech, price: {characters: 1}, voices: [[]]": "models[0].voices[0]: must be a single value",

		"id: a, kind: transcription, price: {input: 1}":                    "models[0].price.input_audio: is required",
		"id: a, kind: transcription, price: {input_audio: 1, output: 1}":   "models[0].max_output_tokens: is required with the price output",
		"id: a, kind: transcription, price: {minutes: 1}, translations: a": "models[0].translations: must be true or false",
	} {
		_, _, err := Parse([]byte("models: [{"+text+"}]"), testProviders())
		var faults Faults
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse of %s returned %v, want %s", text, err, want)
		}
	}
}

// TestKindFields reads the lists and flags of models, and writes them.
func TestKindFields(t *testing.T) {
	t.Parallel()
	const text = `models: [{id: a, kind: speech, price: {characters: 15}, voices: [alloy, Ada Two], formats: [mp3], max_characters: 9},
  {id: b, kind: transcription, price: {input_audio: 2, output: 3}, max_output_tokens: 5, translations: true}]`
	doc, _, err := Parse([]byte(text), testProviders())
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := Parse(doc.canonical(), testProviders())
	if err != nil {
		t.Fatal(err)
	}
	for _, models := range [][]Model{doc.Models, again.Models} {
		speech, transcription := &models[0], &models[1]
		got := fmt.Sprint(speech.List("voices"), speech.List("formats"), speech.Number("max_characters"), speech.Flag("translations"))
		if got != "[alloy Ada Two] [mp3] 9 false" {
			t.Errorf("the fields of speech: got %s", got)
		}
		if !transcription.Flag("translations") || transcription.UnitPrice(kind.Input) != transcription.UnitPrice(kind.InputAudio) {
			t.Errorf("the fields of transcription: got %+v", transcription)
		}
	}
}

// TestMeasures reads prices of a kind with two measures, of which one has two units.
func TestMeasures(t *testing.T) {
	t.Parallel()
	const searches, output = kind.PriceUnit("searches"), kind.PriceUnit("output")
	d := &kind.Definition{Measures: []kind.Measure{
		kind.Tokens(kind.Input, output),
		{Name: "thousand_searches", Per: 1000, Noun: "thousand searches", Units: []kind.PriceUnit{searches}, Quantity: "search"},
	}}
	for text, want := range map[string]string{
		"{input: 2, output: 8}": "",
		"{searches: 2}":         "",
		"{input: 0, output: 0}": "",
		"{input: 2}":            "price.output: is required: USD per million tokens",
		"{}": "price: must be input and output in USD per million tokens, or searches in USD per thousand " +
			"searches",
		"{input: 2, output: 8, searches: 2}": "price: mixes million tokens and thousand searches",
	} {
		n, err := tree.Read([]byte("price: " + text))
		if err != nil {
			t.Fatal(err)
		}
		r := &reader{}
		prices := r.unitPrices("price", n.Get("price"), d)
		switch {
		case want == "" && len(r.faults) > 0, want != "" && (len(r.faults) != 1 || !strings.Contains(r.faults.Error(), want)):
			t.Errorf("reading %s gave the faults %v, want %q", text, r.faults, want)
		case want == "" && measureOf(d, prices) == nil:
			t.Errorf("measureOf(%v) is nil, want a measure", prices)
		}
	}
	mixed := UnitPrices{kind.Input: 2_000_000_000, output: 8_000_000_000}
	for measure, tt := range map[*kind.Measure]struct {
		prices UnitPrices
		counts kind.Quantities
		want   money.Amount
	}{
		&d.Measures[0]: {mixed, kind.Quantities{kind.Input: 1000, output: 10}, 2_080_000},
		&d.Measures[1]: {UnitPrices{searches: 2_000_000_000}, kind.Quantities{searches: 3, kind.Input: 99}, 6_000_000},
	} {
		s := tt.prices.bill(*measure, tt.counts)
		if got := s.Round(); got != tt.want {
			t.Errorf("%v at %v per %s cost %s, want %s", tt.counts, tt.prices, measure.Noun, got, tt.want)
		}
	}
}

// TestUnitCosts checks holds, charges and costs at the provider of an embedding model, and that the
// catalog reads back.
func TestUnitCosts(t *testing.T) {
	t.Parallel()
	doc := mustParse(t, `
models:
- {id: a, kind: embedding, price: {input: 0.02}, max_input_tokens: 20}
- {id: b, kind: embedding, price: {input: 0}, free_daily_requests: 5}
- {id: d, kind: rerank, price: {searches: 2}}
- {id: c, kind: chat, context_window: 1000, max_output_tokens: 100, price: {input: 5, output: 9}}
lines:
- {id: both, provider: sandbox, models: {a: x, b: y, c: z}, max_inputs: 7, cost: {input: 0.01, output: 2}}
- {id: own, provider: sandbox, models: {a: x}, cost: {a: {input: 0.03}}}
- {id: unknown, provider: sandbox, models: {a: x}}
- {id: another, provider: sandbox, models: {d: x}, cost: {input: 0.03}}
`)
	again, warnings, err := Parse(doc.YAML(), testProviders())
	if err != nil || !Equal(doc, again) {
		t.Fatalf("the catalog reads back with error %v and other values: %s", err, doc.YAML())
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].Message, "0.02") {
		t.Errorf("the warnings are %v, want one about the price below the cost of line own", warnings)
	}
	s := NewSnapshot(1, again, testProviders(), environment(nil))
	m, _ := s.Model("a")
	counts := kind.Quantities{kind.Input: 1001}
	if held, charged := m.HighestUnitCost(counts, 500_000), m.UnitCost(counts, 500_000); held != 10_010 || charged != 10_010 {
		t.Errorf("at half the price 1001 tokens are held for %d and charged %d nano-dollars, want 10010", held, charged)
	}
	if n, d, none := m.Number("max_input_tokens"), m.Number("max_inputs"), m.Number("dimensions"); n != 20 || d != 2048 || none != 0 {
		t.Errorf("max_input_tokens %d, max_inputs %d, dimensions %d; want 20, the default 2048, and 0", n, d, none)
	}
	for i, want := range []money.Amount{10_010, 30_030, -1} {
		got, ok := s.AllLines()[i].UnitCost(m, counts)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("line %s: cost %d, want %d", s.AllLines()[i].ID, got, want)
		}
	}
	ranker, _ := s.Model("d")
	if cost, ok := s.AllLines()[3].UnitCost(ranker, kind.Quantities{"searches": 5}); ok {
		t.Errorf("the cost by tokens of a model priced by searches is %s, want none", cost)
	}
	if low, high := ranker.ChargeBounds(ReceiptCounts{Prompt: 7, Quantity: 5}, 0); low != 10_000_000 || high != low {
		t.Errorf("ChargeBounds of 5 searches = %d, %d; want 10000000 twice", low, high)
	}
	if low, high := m.ChargeBounds(ReceiptCounts{Prompt: 1001}, 0); low != 20_020 || high != 20_020 {
		t.Errorf("ChargeBounds = %d, %d; want 20020 twice", low, high)
	}
	if s.AllLines()[0].MaxInputs != 7 {
		t.Errorf("max_inputs of the line is %d, want 7", s.AllLines()[0].MaxInputs)
	}
}
