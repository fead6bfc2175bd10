package catalog

import (
	"strings"
	"testing"

	"tollgate/internal/wire"
)

// modalityModel returns a chat model with these prices by modality.
func modalityModel(t testing.TB, modalities string) (*Model, error) {
	t.Helper()
	doc, _, err := Parse([]byte(`{"models":[{"id":"m","kind":"chat","context_window":100000,"max_output_tokens":1000,"max_image_tokens":500,`+
		`"price":{"input":1,"output":10,"cached_input":0.1,"modalities":`+modalities+`}}],"lines":[]}`), testProviders())
	if err != nil {
		return nil, err
	}
	again, _, err := Parse(doc.YAML(), testProviders())
	if err != nil || string(again.canonical()) != string(doc.canonical()) {
		t.Fatalf("the document does not read back, error %v:\n%s", err, doc.YAML())
	}
	return &doc.Models[0], nil
}

// TestCostOfModalities checks that image and audio tokens have their own rates.
func TestCostOfModalities(t *testing.T) {
	t.Parallel()
	m, err := modalityModel(t, `{"image":{"input":2,"output":120},"audio":{"input":3,"output":5}}`)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := modalityModel(t, `{"image":40}`)
	if err != nil {
		t.Fatal(err)
	}
	images := Pricing{Options: []wire.PricedField{{Param: "modalities", Name: "image"}}}
	mixed := wire.Usage{Prompt: 1000, Cached: 100, PromptImage: 200, PromptAudio: 300,
		Completion: 100, CompletionImage: 60, CompletionAudio: 10}
	for _, tt := range []struct {
		name   string
		m      *Model
		usage  wire.Usage
		choice Pricing
		want   string // USD
	}{
		// 400 x 1 + 100 x 0.1 + 200 x 2 + 300 x 3 + 30 x 10 + 60 x 120 + 10 x 5
		{"images requested", m, mixed, images, "0.00926"},
		// as above, but 60 x 10 instead of 60 x 120
		{"images not requested", m, mixed, Pricing{}, "0.00266"},
		// Audio has the price of text: 900 x 1 + 100 x 0.1 + 40 x 10 + 60 x 40
		{"only an output price", plain, mixed, images, "0.00371"},
		{"more image and audio tokens than all tokens", m,
			wire.Usage{Prompt: 10, PromptImage: 100, PromptAudio: 100, Completion: 10, CompletionImage: 100,
				CompletionAudio: 100}, images, "0.00122"}, // 10 x 2 + 10 x 120
		{"negative counts", m, wire.Usage{Prompt: 10, PromptImage: -1, Completion: 10, CompletionImage: -1}, images, "0.00011"},
	} {
		if got := tt.m.Cost(tt.usage, tt.choice); got.String() != tt.want {
			t.Errorf("%s: got %s USD, want %s", tt.name, got, tt.want)
		}
	}
}

// TestHighestCostOfModalities checks that a hold uses the highest rate among the modalities that
// the request may use.
func TestHighestCostOfModalities(t *testing.T) {
	t.Parallel()
	m, err := modalityModel(t, `{"image":{"input":2,"output":120},"audio":{"input":3}}`)
	if err != nil {
		t.Fatal(err)
	}
	images := Pricing{Options: []wire.PricedField{{Param: "modalities", Name: "image"}}}
	for _, tt := range []struct {
		name   string
		bound  wire.PromptBound
		choice Pricing
		want   string
	}{
		{"only text", wire.PromptBound{}, Pricing{}, "0.002"},                       // 1000 x 1 + 100 x 10
		{"images requested", wire.PromptBound{}, images, "0.013"},                   // 1000 x 1 + 100 x 120
		{"an image in the prompt", wire.PromptBound{Images: 1}, Pricing{}, "0.004"}, // 1500 x 2 + 100 x 10
		{"unbounded prompt", wire.PromptBound{Unbounded: true}, Pricing{}, "0.301"},
	} {
		if got := m.HighestCost(tt.bound, 100, 1, tt.choice); got.String() != tt.want {
			t.Errorf("%s: got %s USD, want %s", tt.name, got, tt.want)
		}
	}
}

// TestImagesNeedAPrice checks that a request for images is rejected unless images have an output
// price.
func TestImagesNeedAPrice(t *testing.T) {
	t.Parallel()
	images := Pricing{Options: []wire.PricedField{{Param: "modalities", Name: "image"}}}
	for modalities, hasPrice := range map[string]bool{
		`{"image":30}`: true, `{"image":{"output":0}}`: true, `{"image":{"input":1}}`: false,
		`{"audio":{"input":1,"output":2}}`: false, `{}`: false,
	} {
		m, err := modalityModel(t, modalities)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.CheckPriced(images); (err == nil) != hasPrice {
			t.Errorf("CheckPriced with modalities %s: error %v, want allowed %t", modalities, err, hasPrice)
		}
	}
}

// TestFaultsOfModalities checks that invalid prices by modality are faults at their paths.
func TestFaultsOfModalities(t *testing.T) {
	t.Parallel()
	for modalities, path := range map[string]string{
		`{"video":1}`:              "models[0].price.modalities.video",
		`{"image":-1}`:             "models[0].price.modalities.image",
		`{"image":{"output":"x"}}`: "models[0].price.modalities.image.output",
		`{"image":{"cached":1}}`:   "models[0].price.modalities.image.cached",
		`{"audio":{}}`:             "models[0].price.modalities.audio",
		`[1]`:                      "models[0].price.modalities",
	} {
		if _, err := modalityModel(t, modalities); err == nil || !strings.Contains(err.Error(), path+":") {
			t.Errorf("modalities %s: error %v, want a fault at %s", modalities, err, path)
		}
	}
}
