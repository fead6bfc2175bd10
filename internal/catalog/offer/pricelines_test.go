package offer

import (
	"slices"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
)

// modelOf returns the model of a catalog entry.
func modelOf(t *testing.T, entry string) *catalog.Model {
	t.Helper()
	doc, _, err := catalog.Parse([]byte("models:\n  - {id: m, "+entry+"}\nlines: []\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &doc.Models[0]
}

// TestPriceChanges compares prices of chat, images and a kind, with the factor of an account.
func TestPriceChanges(t *testing.T) {
	t.Parallel()
	const (
		chat  = "kind: chat, context_window: 300000, max_output_tokens: 100, price: "
		image = "kind: image, ratios: ['1:1'], max_images: 1, price: "
	)
	for name, c := range map[string]struct {
		before, after string
		factor        money.Factor
		want          []PriceChange
	}{
		"input, with the prices that follow it": {chat + "{input: 1, output: 2}", chat + "{input: 1.5, output: 2}", 0,
			[]PriceChange{{Item: Input, Before: "$1.00", After: "$1.50"}}},
		"a discount of an account": {chat + "{input: 1, output: 2}", chat + "{input: 1, output: 4}", money.One / 2,
			[]PriceChange{{Item: Output, Before: "$1.00", After: "$2.00"}}},
		"a price of cached input": {chat + "{input: 1, output: 2}", chat + "{input: 1, output: 2, cached_input: 0.125}", 0,
			[]PriceChange{{Item: CachedInput, Before: "$1.00", After: "$0.125"}}},
		"a band that ends": {chat + "{input: 1, output: 2, above: [{prompt_tokens: 200000, input: 2, output: 3}]}",
			chat + "{input: 1, output: 2}", 0,
			[]PriceChange{{Item: Input, Above: 200000, Before: "$2.00"}, {Item: Output, Above: 200000, Before: "$3.00"}}},
		"tools and options": {chat + "{input: 1, output: 2, tools: {web_search: 0.01}}",
			chat + "{input: 1, output: 2, tools: {web_search: 0.02}, options: {service_tier: {priority: 2}}}", 0,
			[]PriceChange{{Item: Tool, Name: "web_search", Before: "$0.01", After: "$0.02"},
				{Item: Option, Name: "service_tier: priority", After: "× 2"}}},
		"a tier of images": {image + "{1K: 0.03, 2K: 0.05}", image + "{1K: 0.03, 2K: 0.06}", 0,
			[]PriceChange{{Item: Other, Name: "2K", Before: "$0.05", After: "$0.06"}}},
	} {
		if got := PriceChanges(modelOf(t, c.before), modelOf(t, c.after), c.factor); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
