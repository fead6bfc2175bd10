package offer_test

import (
	"encoding/json"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/money"
)

// TestListingMultipliesPrices checks that the account's factor multiplies every price in a listing
// exactly, and no other number.
func TestListingMultipliesPrices(t *testing.T) {
	t.Parallel()
	doc, _, err := catalog.Parse([]byte(`
lines: []
models:
  - id: chat
    kind: chat
    context_window: 400000
    max_output_tokens: 100
    price:
      input: 0.25
      output: 2.00
      cached_input: 0.025
      above: [{prompt_tokens: 272000, input: 0.50, output: 3.00}]
      modalities: {image: {input: 0.3, output: 30}, audio: 4}
      options: {service_tier: {priority: 2, flex: 0.5}}
      tools: {web_search: 0.01}
  - {id: easel, kind: image, price: {1K: 0.03, 2K: 0.05}, ratios: ["1:1"], max_images: 4}
  - {id: clip, kind: video, per_clip: {720p: 0.40}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`{"input":0.08333325,"output":0.666666,"cached_input":0.008333325,` +
			`"above":[{"prompt_tokens":272000,"input":0.1666665,"output":0.999999}],` +
			`"modalities":{"image":{"input":0.0999999,"output":9.99999},"audio":1.333332},` +
			`"options":{"service_tier":{"flex":0.5,"priority":2}},"tools":{"web_search":0.00333333}}`,
		`{"1K":0.00999999,"2K":0.01666665}`,
		`{"720p":0.1333332}`,
	} {
		m := &doc.Models[i]
		if got := listingPrice(t, m, 333_333); got != want {
			t.Errorf("price of %s times 0.333333 = %s, want %s", m.ID, got, want)
		}
		if got := listingPrice(t, m, 0); got != string(offer.Price(m)) {
			t.Errorf("price of %s without a factor = %s, want %s", m.ID, got, offer.Price(m))
		}
	}
}

// listingPrice returns the price in a model's listing for an account with factor.
func listingPrice(t *testing.T, m *catalog.Model, factor money.Factor) string {
	t.Helper()
	var listing struct{ Price json.RawMessage }
	if err := json.Unmarshal(offer.Listing(m, 0, factor), &listing); err != nil {
		t.Fatal(err)
	}
	return string(listing.Price)
}
