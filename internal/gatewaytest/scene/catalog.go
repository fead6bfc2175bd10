package scene

import (
	"encoding/json"
	"maps"

	"tollgate/internal/money"
)

// ChatModel returns a chat model with the members of more.
func ChatModel(id string, more map[string]any) map[string]any {
	return merge(map[string]any{"id": id, "kind": "chat", "forms": []string{"chat"}, "context_window": 100000,
		"max_output_tokens": 1000, "price": map[string]any{"input": 1, "output": 2}}, more)
}

// ChatLine returns a line for models, with the members of more.
func ChatLine(id, url string, more map[string]any, models ...string) map[string]any {
	vendorIDs := map[string]string{}
	for _, m := range models {
		vendorIDs[m] = "vendor-" + m
	}
	return merge(map[string]any{"id": id, "provider": "openai", "base_url": url, "api_key": "${FAILING_LINE_KEY}", "models": vendorIDs,
		"timeouts": map[string]any{"first_token": "30s", "idle": "30s", "total": "30s"}}, more)
}

// PriceList returns a price with all parts. At a dollar per million tokens, a token costs 1000
// nano-dollars.
func PriceList() map[string]any {
	return map[string]any{"price": map[string]any{
		"input": 1, "output": 10, "cached_input": 0.1, "cache_write": 1.25, "cache_write_1h": 2,
		"above": []any{map[string]any{"prompt_tokens": 1000, "input": 2, "output": 20, "cached_input": 0.2, "cache_write": 2.5,
			"cache_write_1h": 4}},
		"tools": map[string]any{"web_search": 0.01},
	}}
}

// FormModel returns a chat model that accepts requests in forms.
func FormModel(id string, more map[string]any, forms ...Form) map[string]any {
	return merge(ChatModel(id, more), map[string]any{"forms": forms})
}

// FormLine returns a line that sends requests in one form.
func FormLine(id, form, url string, more map[string]any, models ...string) map[string]any {
	l := ChatLine(id, url, map[string]any{"forms": []string{form}}, models...)
	switch form {
	case "messages":
		l["provider"] = "anthropic"
	case "gemini", "interactions":
		l["provider"] = "gemini"
	}
	return merge(l, more)
}

// Prices of the test models. A rounding error would change the last digits.
const (
	PricePicture = 30_000_001 // nano-dollars of an image of tier 1K
	PriceLarge   = 50_000_003 // of an image of tier 2K
	PriceSecond  = 10_700_009 // of a second of video
	ClipSeconds  = 8
	PriceClip    = ClipSeconds * PriceSecond
	CreditOfJobs = 100 * money.USD // of each Customer
)

// ImageModel returns an image model with the members of more.
func ImageModel(id string, more map[string]any) map[string]any {
	return merge(map[string]any{"id": id, "kind": "image", "ratios": []string{"1:1", "16:9"}, "max_images": 4, "max_references": 4,
		"price": map[string]any{"1K": usd(PricePicture), "2K": usd(PriceLarge)}}, more)
}

// VideoModel returns a video model with the members of more.
func VideoModel(id string, more map[string]any) map[string]any {
	return merge(map[string]any{"id": id, "kind": "video", "ratios": []string{"16:9", "9:16"}, "durations": []int{ClipSeconds, 12},
		"max_references": 2,
		"price":          map[string]any{"720p": usd(PriceSecond)}}, more)
}

// ClipModel returns a video model of one tier and length. Its clip costs PriceClip.
func ClipModel(id, tier string, seconds int) map[string]any {
	m := VideoModel(id, map[string]any{"durations": []int{seconds}, "per_clip": map[string]any{tier: usd(PriceClip)}})
	delete(m, "price")
	return m
}

// merge copies the members of more into members, and replaces members of the same name.
func merge(members, more map[string]any) map[string]any {
	maps.Copy(members, more)
	return members
}

func usd(a money.Amount) json.Number { return json.Number(a.String()) }
