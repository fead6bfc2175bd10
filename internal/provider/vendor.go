// Package provider owns how an operator adds a provider with a form: the vendors, their list prices,
// the test call, and the catalog that follows from the form.
//
// Invariants: a key goes only to the address that the operator has entered; no error contains a key
// or the words of a provider.
package provider

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// ChatVendor is a vendor of chat models in the form for new providers.
type ChatVendor struct {
	ID, Name string
	Provider string // of its lines in the catalog
	BaseURL  string // if empty, the operator enters the address
	KeyPage  string // where the operator gets a key; may be empty
	Keyless  bool   // the operator's own server, for which a key is optional
}

// Vendors returns the vendors in the order of the form. The last ones are servers with any address.
func Vendors() []ChatVendor {
	return []ChatVendor{
		{ID: "openai", Name: "OpenAI", Provider: "openai", BaseURL: "https://api.openai.com/v1",
			KeyPage: "https://platform.openai.com/api-keys"},
		{ID: "anthropic", Name: "Anthropic", Provider: "anthropic", BaseURL: "https://api.anthropic.com",
			KeyPage: "https://platform.claude.com/settings/keys"},
		{ID: "gemini", Name: "Google Gemini", Provider: "gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta",
			KeyPage: "https://aistudio.google.com/apikey"},
		{ID: "deepseek", Name: "DeepSeek", Provider: "openai", BaseURL: "https://api.deepseek.com",
			KeyPage: "https://platform.deepseek.com/api_keys"},
		{ID: "xai", Name: "xAI", Provider: "openai", BaseURL: "https://api.x.ai/v1", KeyPage: "https://console.x.ai"},
		{ID: "mistral", Name: "Mistral", Provider: "openai", BaseURL: "https://api.mistral.ai/v1",
			KeyPage: "https://console.mistral.ai/api-keys"},
		{ID: "moonshot", Name: "Moonshot (Kimi)", Provider: "openai", BaseURL: "https://api.moonshot.ai/v1",
			KeyPage: "https://platform.moonshot.ai/console/api-keys"},
		{ID: "zai", Name: "Z.ai (GLM)", Provider: "openai", BaseURL: "https://api.z.ai/api/paas/v4",
			KeyPage: "https://z.ai/manage-apikey/apikey-list"},
		{ID: "qwen", Name: "Alibaba Cloud (Qwen)", Provider: "openai", BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
			KeyPage: "https://modelstudio.console.alibabacloud.com"},
		{ID: "minimax", Name: "MiniMax", Provider: "openai", BaseURL: "https://api.minimax.io/v1", KeyPage: "https://platform.minimax.io"},
		{ID: "groq", Name: "Groq", Provider: "openai", BaseURL: "https://api.groq.com/openai/v1", KeyPage: "https://console.groq.com/keys"},
		{ID: "cerebras", Name: "Cerebras", Provider: "openai", BaseURL: "https://api.cerebras.ai/v1", KeyPage: "https://cloud.cerebras.ai"},
		{ID: "together", Name: "Together", Provider: "openai", BaseURL: "https://api.together.ai/v1",
			KeyPage: "https://api.together.ai/settings/api-keys"},
		{ID: "fireworks", Name: "Fireworks", Provider: "openai", BaseURL: "https://api.fireworks.ai/inference/v1",
			KeyPage: "https://app.fireworks.ai/settings/users/api-keys"},
		{ID: "openrouter", Name: "OpenRouter", Provider: "openai", BaseURL: "https://openrouter.ai/api/v1",
			KeyPage: "https://openrouter.ai/keys"},
		{ID: "cohere", Name: "Cohere", Provider: "openai", BaseURL: "https://api.cohere.ai/compatibility/v1",
			KeyPage: "https://dashboard.cohere.com/api-keys"},
		{ID: "compatible", Name: "Other, compatible with OpenAI", Provider: "openai", Keyless: true},
		{ID: "messages", Name: "Other, compatible with Anthropic", Provider: "anthropic"},
	}
}

// VendorByID returns a vendor of Vendors.
func VendorByID(id string) (ChatVendor, bool) {
	return find(func(v ChatVendor) bool { return v.ID == id })
}

// VendorOf returns the vendor of a line, and false for a line of no vendor.
func VendorOf(l *catalog.LineSpec) (ChatVendor, bool) {
	if v, ok := find(func(v ChatVendor) bool { return v.Provider == l.Provider && v.BaseURL != "" && v.BaseURL == l.BaseURL }); ok {
		return v, true
	}
	switch {
	case l.BaseURL == "": // the default of the provider
		return VendorByID(l.Provider)
	case l.Provider == "openai":
		return VendorByID("compatible")
	case l.Provider == "anthropic":
		return VendorByID("messages")
	}
	return ChatVendor{}, false
}

func find(match func(ChatVendor) bool) (ChatVendor, bool) {
	all := Vendors()
	i := slices.IndexFunc(all, match)
	if i < 0 {
		return ChatVendor{}, false
	}
	return all[i], true
}

// forms returns the wire forms of a vendor's lines, or nil for all forms of its provider. Most
// compatible vendors have chat completions only.
func (v ChatVendor) forms() []wire.Form {
	if v.Provider != "openai" || v.ID == "openai" || v.ID == "xai" {
		return nil
	}
	return []wire.Form{wire.FormChat}
}

// Listed is a model in the table of list prices.
type Listed struct {
	Cost      catalog.ChatPrice // the vendor's prices
	Context   int64             // tokens
	MaxOutput int64             // tokens
	Reasoning bool
}

// prices.txt has the list prices; its first lines say where they come from, and when.
//
//go:embed prices.txt
var prices string

// ListedModel returns the list price of a vendor's model, and false if unknown.
func (v ChatVendor) ListedModel(model string) (Listed, bool) {
	for line := range strings.Lines(prices) {
		f := strings.Fields(line)
		if len(f) < 10 || f[0] != v.ID || f[1] != model {
			continue
		}
		p := Listed{Context: number(f[7]), MaxOutput: number(f[8]), Reasoning: f[9] == "thinks"}
		p.Cost.Rates = catalog.Rates{Input: price(f[2]), CachedInput: price(f[3]), CacheWrite: price(f[4]), CacheWrite1h: price(f[5]),
			Output: price(f[6])}
		if len(f) > 11 { // a band: its PromptTokens, and the factors of its input and output prices
			input, output := price(f[11]), price(f[12])
			scaled := func(p money.Price) money.Price { return p.Proportion(input, oneUSD) }
			p.Cost.Bands = []catalog.Band{{PromptTokens: number(f[10]), Rates: catalog.Rates{Input: scaled(p.Cost.Input),
				CachedInput: scaled(p.Cost.CachedInput), CacheWrite: scaled(p.Cost.CacheWrite), CacheWrite1h: scaled(p.Cost.CacheWrite1h),
				Output: p.Cost.Output.Proportion(output, oneUSD)}}}
		}
		return p, true
	}
	return Listed{}, false
}

// ListedModels returns the IDs of a vendor's models with a list price, in the order of the table.
func (v ChatVendor) ListedModels() (ids []string) {
	for line := range strings.Lines(prices) {
		if f := strings.Fields(line); len(f) >= 10 && f[0] == v.ID {
			ids = append(ids, f[1])
		}
	}
	return ids
}

const oneUSD = money.Price(money.USD)

// price and number read the table, which a test checks.
func price(text string) money.Price {
	p, err := money.ParsePrice(text)
	if err != nil {
		return money.MaxPrice
	}
	return p
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // the test checks the table
	return n
}
