package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// usd parses a price in US dollars.
func usd(t testing.TB, s string) money.Price {
	t.Helper()
	p, err := money.ParsePrice(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// lark returns a model with every kind of price.
func lark(t testing.TB) *Model { return &mustParse(t, string(example(t))).Models[0] }

func TestHighestCost(t *testing.T) {
	t.Parallel()
	tier := func(name string) Pricing {
		return Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: name}}}
	}
	search := func(calls int64) Pricing {
		return Pricing{Tools: []wire.PricedField{{Param: "tools[0].type", Name: "web_search", MaxCalls: calls}}}
	}
	for _, tt := range []struct {
		name     string
		bound    wire.PromptBound
		limit, n int64
		choice   Pricing
		want     string // USD
	}{
		// The highest input price of the model is cache_write_1h, 0.50.
		{"bytes plus a thousand", wire.PromptBound{TextBytes: 1000}, 1000, 1, Pricing{}, "0.003"}, // 2000 x 0.5 + 1000 x 2
		{"limit above the model's", wire.PromptBound{}, 1 << 40, 1, Pricing{}, "0.033268"},        // 1000 x 0.5 + 16384 x 2
		{"default limit", wire.PromptBound{}, 0, 1, Pricing{}, "0.008692"},                        // 1000 x 0.5 + 4096 x 2
		{"limit above the default", wire.PromptBound{}, 8000, 1, Pricing{}, "0.0165"},             // 1000 x 0.5 + 8000 x 2
		{"three answers", wire.PromptBound{}, 100, 3, Pricing{}, "0.0011"},                        // 1000 x 0.5 + 300 x 2
		{"images", wire.PromptBound{Images: 2}, 100, 1, Pricing{}, "0.008892"},                    // 17384 x 0.5 + 100 x 2
		{"unbounded prompt", wire.PromptBound{Unbounded: true}, 100, 1, Pricing{}, "0.0642"},      // 128000 x 0.5 + 100 x 2
		{"prompt above the window", wire.PromptBound{TextBytes: 1 << 60, Images: 1 << 60}, 100, 1, Pricing{}, "0.0642"},
		{"priority tier", wire.PromptBound{}, 100, 1, tier("priority"), "0.0014"},
		{"flex tier served as default", wire.PromptBound{}, 100, 1, tier("flex"), "0.0007"},
		{"ten calls of a tool", wire.PromptBound{}, 100, 1, search(0), "0.1007"},
		{"calls limited by the request", wire.PromptBound{}, 100, 1, search(3), "0.0307"},
		{"output beyond the limit", wire.PromptBound{}, 100, 1, Pricing{BeyondLimit: 400}, "0.0015"},      // 1000 x 0.5 + 500 x 2
		{"output beyond the window", wire.PromptBound{}, 100, 2, Pricing{BeyondLimit: 1 << 40}, "0.5129"}, // 2 x 128100 x 2
		{"negative counts", wire.PromptBound{TextBytes: -5, Images: -5}, 100, -3, Pricing{BeyondLimit: -7}, "0.0007"},
	} {
		if got := lark(t).HighestCost(tt.bound, tt.limit, tt.n, tt.choice); got.String() != tt.want {
			t.Errorf("%s: got %s USD, want %s", tt.name, got, tt.want)
		}
	}
}

// TestHighestCostUsesHighestReachableBand checks that the hold is the highest bill among the bands
// that the prompt may reach.
func TestHighestCostUsesHighestReachableBand(t *testing.T) {
	t.Parallel()
	m := &Model{ContextWindow: 1_000_000, MaxOutputTokens: 1000, MaxImageTokens: 1}
	rates := func(input, output string) Rates {
		in := usd(t, input)
		return Rates{in, usd(t, output), in, in, in}
	}
	m.Price = ChatPrice{Rates: rates("1", "1000"), Bands: []Band{{10_000, rates("2", "10")}, {50_000, rates("3", "5")}}}
	for bytes, want := range map[int64]string{
		0:       "1.001", // only the first band
		9_000:   "1.01",  // exactly at the threshold, so not above it
		9_001:   "1.01",  // the second band is in reach but cheaper as a whole
		100_000: "1.01",  // the first band's longest prompt, not the bound
		999_000: "3.005", // the third band's prompt outweighs its output
	} {
		if got := m.HighestCost(wire.PromptBound{TextBytes: bytes}, 0, 1, Pricing{}); got.String() != want {
			t.Errorf("%d bytes: got %s USD, want %s", bytes, got, want)
		}
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	priority := Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: "priority"}}}
	flex := Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: "flex"}}}
	for _, tt := range []struct {
		name   string
		usage  wire.Usage
		choice Pricing
		want   string
	}{
		{"nothing", wire.Usage{}, Pricing{}, "0"},
		{"prompt and answer", wire.Usage{Prompt: 1000, Completion: 100}, Pricing{}, "0.00045"},
		{"reasoning is part of the answer", wire.Usage{Prompt: 1000, Completion: 100, Reasoning: 90}, Pricing{}, "0.00045"},
		// 200 x .25 + 800 x .025 + 100 x 2
		{"cached", wire.Usage{Prompt: 1000, Cached: 800, Completion: 100}, Pricing{}, "0.00027"},
		// 300 x .25 + 400 x .025 + 200 x .3125 + 100 x .5
		{"all kinds of prompt tokens", wire.Usage{Prompt: 1000, Cached: 400, CacheWrite: 200, CacheWrite1h: 100}, Pricing{}, "0.0001975"},
		{"at the threshold", wire.Usage{Prompt: 200_000}, Pricing{}, "0.05"},
		{"above the threshold", wire.Usage{Prompt: 200_001, Completion: 1}, Pricing{}, "0.1000035"},
		{"cached tokens above the threshold", wire.Usage{Prompt: 200_001, Cached: 200_001}, Pricing{}, "0.01000005"},
		{"requested tier", wire.Usage{Prompt: 1000}, priority, "0.0005"},
		{"tier of the answer", wire.Usage{Prompt: 1000, ServiceTier: "flex"}, priority, "0.000125"},
		{"answer at the ordinary tier", wire.Usage{Prompt: 1000, ServiceTier: "default"}, priority, "0.00025"},
		{"answer at a tier without a price", wire.Usage{Prompt: 1000, ServiceTier: "scale"}, priority, "0.0005"},
		{"flex served as default", wire.Usage{Prompt: 1000, ServiceTier: "default"}, flex, "0.00025"},
		{"dearer tier than requested", wire.Usage{Prompt: 1000, ServiceTier: "priority"}, Pricing{}, "0.00025"},
		{"cheaper tier than requested", wire.Usage{Prompt: 1000, ServiceTier: "flex"}, Pricing{}, "0.000125"},
		{"tool calls", wire.Usage{ToolCalls: map[string]int64{"web_search": 3, "unpriced": 9}}, Pricing{}, "0.03"},
		{"rounded once, half up", wire.Usage{Prompt: 1, Cached: 1}, flex, "0.000000013"}, // 12.5 nano
		{"negative counts", wire.Usage{Prompt: -1000, Cached: -5, CacheWrite: -1, CacheWrite1h: -1, Completion: -10,
			ToolCalls: map[string]int64{"web_search": -4}}, Pricing{}, "0"},
		{"more cached than prompt", wire.Usage{Prompt: 1000, Cached: 5000}, Pricing{}, "0.000025"},
		{"more cache tokens than prompt", wire.Usage{Prompt: 1000, CacheWrite1h: 800, CacheWrite: 800, Cached: 800}, Pricing{}, "0.0004625"},
	} {
		if got := lark(t).Cost(tt.usage, tt.choice); got.String() != tt.want {
			t.Errorf("%s: got %s USD, want %s", tt.name, got, tt.want)
		}
	}
}

// TestCostNeverExceedsTheHold checks that no answer within the limits of its request costs more
// than the hold.
func TestCostNeverExceedsTheHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		var c Pricing
		if rapid.Bool().Draw(t, "requests images") {
			c.Options = append(c.Options, wire.PricedField{Param: "modalities", Name: "image"})
		}
		for _, option := range []string{"service_tier", "speed"} {
			if rapid.Bool().Draw(t, "uses "+option) {
				value := rapid.SampledFrom([]string{"default", "priority", "flex", "unpriced"}).Draw(t, option)
				c.Options = append(c.Options, wire.PricedField{Param: option, Name: value})
			}
		}
		c.Factor = drawFactor(t)
		calls := map[string]int64{}
		if rapid.Bool().Draw(t, "searches") {
			limit := rapid.Int64Range(0, 20).Draw(t, "max calls")
			c.Tools = []wire.PricedField{{Name: "web_search", MaxCalls: limit}}
			calls["web_search"] = rapid.Int64Range(0, cmp.Or(limit, 10)).Draw(t, "calls")
		}
		bound := wire.PromptBound{
			TextBytes: rapid.Int64Range(0, 400_000).Draw(t, "bytes"),
			Images:    rapid.Int64Range(0, 5).Draw(t, "images"),
			Unbounded: rapid.IntRange(0, 9).Draw(t, "unbounded") == 0,
		}
		limit := rapid.Int64Range(0, 40_000).Draw(t, "limit")
		n := rapid.Int64Range(1, 8).Draw(t, "n")
		answerLimit, _ := m.OutputLimit(limit)
		prompt := rapid.Int64Range(0, m.PromptTokens(bound)).Draw(t, "prompt")
		// Parts may contradict their whole. The cost must not exceed the hold even then.
		usage := wire.Usage{
			Prompt:       prompt,
			Cached:       rapid.Int64Range(-10, prompt+10).Draw(t, "cached"),
			CacheWrite:   rapid.Int64Range(-10, prompt+10).Draw(t, "write"),
			CacheWrite1h: rapid.Int64Range(-10, prompt+10).Draw(t, "write 1h"),
			Completion:   rapid.Int64Range(0, answerLimit*n).Draw(t, "completion"),
			ToolCalls:    calls,

			CompletionImage: rapid.Int64Range(-10, answerLimit*n+10).Draw(t, "image"),
			CompletionAudio: rapid.Int64Range(-10, answerLimit*n+10).Draw(t, "audio"),
			ServiceTier:     rapid.SampledFrom([]string{"", "default", "priority", "flex", "scale"}).Draw(t, "tier of the answer"),
		}
		if bound.Images > 0 || bound.Unbounded {
			usage.PromptImage = rapid.Int64Range(-10, prompt+10).Draw(t, "image in the prompt")
		}
		if bound.Unbounded {
			usage.PromptAudio = rapid.Int64Range(-10, prompt+10).Draw(t, "audio in the prompt")
		}
		cost, hold := m.Cost(usage, c), m.HighestCost(bound, limit, n, c)
		if cost < 0 || cost > hold {
			t.Fatalf("usage %+v costs %s, want from 0 to the hold %s", usage, cost, hold)
		}
	})
}

// drawFactor returns no factor, or any valid factor of an account.
func drawFactor(t *rapid.T) money.Factor {
	return rapid.OneOf(rapid.SampledFrom([]money.Factor{0, money.One, 1, 900_000, 1_300_000, 333_333, money.MaxFactor}),
		rapid.Map(rapid.Int64Range(1, int64(money.MaxFactor)), func(v int64) money.Factor { return money.Factor(v) })).Draw(t, "factor")
}

// drawModel returns a chat model with any prices valid in a catalog.
func drawModel(t *rapid.T) *Model {
	price := rapid.Map(rapid.Int64Range(0, 100*int64(money.USD)), func(v int64) money.Price { return money.Price(v) })
	rates := func(label string) Rates {
		return Rates{
			Input: price.Draw(t, label), Output: price.Draw(t, label), CachedInput: price.Draw(t, label),
			CacheWrite: price.Draw(t, label), CacheWrite1h: price.Draw(t, label),
		}
	}
	m := &Model{
		Kind: KindChat, ContextWindow: rapid.Int64Range(1, 500_000).Draw(t, "window"),
		MaxOutputTokens: rapid.Int64Range(1, 50_000).Draw(t, "max output"),
		MaxImageTokens:  rapid.Int64Range(1, 20_000).Draw(t, "image tokens"),
	}
	if rapid.Bool().Draw(t, "has default") {
		m.DefaultOutputTokens = rapid.Int64Range(1, m.MaxOutputTokens).Draw(t, "default output")
	}
	m.Price.Rates = rates("rate")
	threshold := int64(0)
	for range rapid.IntRange(0, 3).Draw(t, "bands") {
		threshold += rapid.Int64Range(1, 200_000).Draw(t, "threshold")
		m.Price.Bands = append(m.Price.Bands, Band{threshold, rates("rate above")})
	}
	rate := rapid.Map(price, func(p money.Price) *money.Price { return &p })
	m.Price.Modalities = map[string]ModalityRates{}
	for _, name := range []string{"image", "audio"} {
		if rapid.Bool().Draw(t, "prices "+name) {
			m.Price.Modalities[name] = ModalityRates{rate.Draw(t, "input"), rate.Draw(t, "output")}
		}
	}
	factor := rapid.Map(rapid.Int64Range(0, 5*int64(money.One)), func(v int64) money.Factor { return money.Factor(v) })
	m.Price.Options = map[string]map[string]money.Factor{
		"service_tier": {"priority": factor.Draw(t, "priority"), "flex": factor.Draw(t, "flex")},
		"speed":        {"priority": factor.Draw(t, "fast")},
	}
	m.Price.Tools = map[string]money.Price{"web_search": money.Price(rapid.Int64Range(0, int64(money.USD)).Draw(t, "tool"))}
	return m
}

// TestCheckPriced checks that options and hosted tools without a price are rejected.
func TestCheckPriced(t *testing.T) {
	t.Parallel()
	m := lark(t)
	for _, tt := range []struct {
		name   string
		choice Pricing
		param  string // empty if the request is allowed
	}{
		{"no options", Pricing{}, ""},
		{"priced tier", Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: "priority"}}}, ""},
		{"ordinary tier", Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: "standard"}}}, ""},
		{"unpriced tier", Pricing{Options: []wire.PricedField{{Param: "service_tier", Name: "scale"}}}, "service_tier"},
		{"unpriced option", Pricing{Options: []wire.PricedField{{Param: "speed", Name: "fast"}}}, "speed"},
		{"priced tool", Pricing{Tools: []wire.PricedField{{Param: "web_search_options", Name: "web_search"}}}, ""},
		{"unpriced tool", Pricing{Tools: []wire.PricedField{{Param: "tools[2].type", Name: "file_search"}}}, "tools[2].type"},
	} {
		err := m.CheckPriced(tt.choice)
		var e *fault.Error
		switch {
		case tt.param == "" && err != nil:
			t.Errorf("%s: error %v, want none", tt.name, err)
		case tt.param != "" &&
			(!errors.As(err, &e) || e.Code != fault.InvalidRequest || e.Param != tt.param || !strings.Contains(e.Message(), "Leave ")):
			t.Errorf("%s: error %v, want advice about %s", tt.name, err, tt.param)
		}
	}
}

// TestToolOptionsHaveAPrice checks that an option inside a hosted tool multiplies the price of the
// tool's calls in the hold and in the charge, and is rejected without a price.
func TestToolOptionsHaveAPrice(t *testing.T) {
	t.Parallel()
	m := lark(t)
	m.Price.Options = map[string]map[string]money.Factor{"web_search.search_context_size": {"high": 3 * money.One, "low": money.One / 2}}
	toolWith := func(option, value string) Pricing {
		return Pricing{Tools: []wire.PricedField{{Param: "tools[0].type", Name: "web_search", MaxCalls: 2,
			Options: []wire.PricedField{{Param: "tools[0]." + option, Option: option, Name: value}}}}}
	}
	usage := wire.Usage{ToolCalls: map[string]int64{"web_search": 2}}
	for value, usd := range map[string]string{"high": "0.06", "low": "0.01"} {
		c := toolWith("search_context_size", value)
		if err := m.CheckPriced(c); err != nil {
			t.Errorf("%s: error %v, want none", value, err)
		}
		if got := m.Cost(usage, c); got.String() != usd {
			t.Errorf("%s: charged %s, want %s", value, got, usd)
		}
		if got := m.HighestCost(wire.PromptBound{}, 1, 1, c) - m.HighestCost(wire.PromptBound{}, 1, 1, Pricing{}); got.String() != usd {
			t.Errorf("%s: held %s for two calls, want %s", value, got, usd)
		}
	}
	for option, value := range map[string]string{"search_context_size": "medium-plus", "model": "larger", "quality": "high"} {
		err := m.CheckPriced(toolWith(option, value))
		if e, ok := errors.AsType[*fault.Error](err); !ok || e.Code != fault.InvalidRequest || e.Param != "tools[0]."+option {
			t.Errorf("%s %s: error %v, want invalid_request about the option", option, value, err)
		}
	}
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	m := &Model{MaxOutputTokens: 1000, DefaultOutputTokens: 100}
	plain := &Model{MaxOutputTokens: 1000}
	for _, tt := range []struct {
		m                         *Model
		limit, hold, defaultLimit int64
	}{{m, 0, 100, 100}, {m, 50, 50, 0}, {m, 500, 500, 0}, {m, 5000, 1000, 0}, {plain, 0, 1000, 0}, {plain, 5000, 1000, 0}} {
		if hold, defaultLimit := tt.m.OutputLimit(tt.limit); hold != tt.hold || defaultLimit != tt.defaultLimit {
			t.Errorf("OutputLimit(%d) = %d, %d, want %d, %d", tt.limit, hold, defaultLimit, tt.hold, tt.defaultLimit)
		}
	}
}

// TestDefaultRatesOfBands checks that rates missing in a band have the same ratio to input as in
// the base price.
func TestDefaultRatesOfBands(t *testing.T) {
	t.Parallel()
	const base = "{input: 1.25, output: 10, cached_input: 0.125, cache_write: 1.5625, cache_write_1h: 2.5, " +
		"above: [{prompt_tokens: 9, output: 1, %s}]}"
	band := func(text string) string { return fmt.Sprintf(base, text) }
	for price, want := range map[string][4]money.Price{ // input, cached_input, cache_write, cache_write_1h
		band("input: 2.5"): {2_500_000_000, 250_000_000, 3_125_000_000, 5_000_000_000},
		band("input: 2.5, cached_input: 1, cache_write_1h: 0"): {2_500_000_000, 1_000_000_000, 3_125_000_000, 0},
		band("input: 2.5, cache_write: 4"):                     {2_500_000_000, 250_000_000, 4_000_000_000, 5_000_000_000},
		band("input: 0"):                                       {},
		band("input: 0.000000004"):                             {4, 0, 5, 8},
		band("input: 0.000000005"):                             {5, 1, 6, 10}, // half up
		// Without cache rates in the base, all rates equal input.
		"{input: 1, output: 1, above: [{prompt_tokens: 9, input: 2, output: 1}]}": {2e9, 2e9, 2e9, 2e9},
		// A base input of 0 has no ratio.
		"{input: 0, output: 1, cached_input: 1, above: [{prompt_tokens: 9, input: 2, output: 1}]}": {2e9, 2e9, 2e9, 2e9},
	} {
		doc := mustParse(t, "models: [{id: a, kind: chat, context_window: 9, max_output_tokens: 9, price: "+price+"}]\nlines: []")
		again := mustParse(t, string(doc.YAML()))
		for _, d := range []*Document{doc, again} {
			r := d.Models[0].Price.Bands[0].Rates
			if got := [4]money.Price{r.Input, r.CachedInput, r.CacheWrite, r.CacheWrite1h}; got != want || !Equal(d, doc) {
				t.Errorf("%s: got rates %s, want %s in\n%s", price, got, want, d.YAML())
			}
		}
	}
}
