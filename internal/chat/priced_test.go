package chat

import (
	"errors"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/wire"
)

// TestCacheTimesHaveAPrice checks that a cache time of one hour has the price cache_write_1h,
// wherever the mark is, and that any other time except the vendor's shortest needs a priced option.
func TestCacheTimesHaveAPrice(t *testing.T) {
	t.Parallel()
	const hi, hour = `"messages":[{"role":"user","content":"x"}]`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`
	const tools = `"tools":[{"name":"f","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral","ttl":"1h"}}]`
	for _, c := range []struct {
		form  wire.Form
		body  string
		param string // of the refusal without a price, or empty if accepted
		long  bool
	}{
		{wire.FormMessages, `"messages":[{"role":"user","content":[{"type":"text","text":"x",` + hour + `}]}]`, "", true},
		{wire.FormMessages, `"system":[{"type":"text","text":"x",` + hour + `}],` + hi, "", true},
		{wire.FormMessages, hi + `,"cache_control":{"type":"ephemeral","ttl":"1h"}`, "", true},
		{wire.FormMessages, hi + "," + tools, "", true},
		{wire.FormMessages, `"messages":[{"role":"user",` +
			`"content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x",` +
			`"cache_control":{"ttl":"1h"}}]}]}]`, "", true},
		{wire.FormMessages, hi + `,"cache_control":{"type":"ephemeral","ttl":"5m"}`, "", false},
		{wire.FormMessages, hi + `,"cache_control":{"type":"ephemeral"}`, "", false},
		{wire.FormMessages, hi + `,"cache_control":null`, "", false},
		{wire.FormMessages, hi + `,"cache_control":{"ttl":"24h"}`, "cache_control.ttl", true},
		{wire.FormMessages, hi + `,"cache_control":{"ttl":"1H"}`, "cache_control.ttl", true},
		{wire.FormMessages, hi + `,"cache_control":{"ttl":3600}`, "cache_control.ttl", true},
		{wire.FormMessages, `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f",` +
			`"input":{"cache_control":{"ttl":"9d"}}}]}]`, "", false},
		{wire.FormMessages, hi + `,"tools":[{"type":"advisor_20260301","name":"a","model":"m","caching":{"type":"ephemeral","ttl":"24h"}}]`,
			"tools[0].caching.ttl", true},
		{wire.FormMessages, `"messages":[{"role":"user","content":[{"type":"text","text":"x","caching":{"ttl":"1h"}}]}]`, "", true},
		{wire.FormMessages, `"messages":[{"role":"user","content":[{"type":"text","text":"x","caching":{"ttl":"5m"}}]}]`, "", false},
		{wire.FormMessages, `"system":[{"type":"text","text":"x","caching":{"ttl":"2h"}}],` + hi, "system[0].caching.ttl", true},
		{wire.FormChat, `"messages":[{"role":"user","content":[{"type":"text","text":"x","caching":{"ttl":86400}}]}]`,
			"messages[0].content[0].caching.ttl", true},
		{wire.FormResponses, `"input":[{"role":"user","content":[{"type":"input_text","text":"x","caching":{"ttl":"1d"}}]}]`,
			"input[0].content[0].caching.ttl", true},
		{wire.FormChat, `"messages":[{"role":"user","content":[{"type":"text","text":"x",` + hour + `}]}]`, "", true},
		{wire.FormChat, `"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{"ttl":"1d"}}]}]`,
			"messages[0].content[0].cache_control.ttl", true},
		{wire.FormChat, `"messages":[{"role":"user","content":[{"type":"text","text":"x",` +
			`"prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}]`,
			"messages[0].content[0].prompt_cache_breakpoint.ttl", true},
		{wire.FormChat, `"messages":[{"role":"user","content":[{"type":"text","text":"x",` +
			`"prompt_cache_breakpoint":{"mode":"explicit"}}]}]`, "", false},
		{wire.FormResponses, `"input":[{"role":"user","content":[{"type":"input_text","text":"x",` +
			`"prompt_cache_breakpoint":{"ttl":"12h"}}]}]`,
			"input[0].content[0].prompt_cache_breakpoint.ttl", true},
		{wire.FormResponses, `"input":[{"role":"user","content":[{"type":"input_text","text":"x",` +
			`"prompt_cache_breakpoint":{"ttl":"30m"}}]}]`, "", false},
		{wire.FormResponses, `"input":[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"x",` +
			`"prompt_cache_breakpoint":{"ttl":"\u0031 2h"}}]}]`, "input[0].output[0].prompt_cache_breakpoint.ttl", true},
		{wire.FormResponses, `"input":"x","prompt_cache_options":{"ttl":"12h"}`, "prompt_cache_options.ttl", true},
	} {
		r := checked(t, c.form, `{"model":"m","max_tokens":5,`+c.body+`}`)
		m := &catalog.Model{ID: "m"}
		choice, _ := m.PricingOf(r.Params(), 0)
		var f *fault.Error
		if errors.As(m.CheckPriced(choice), &f); f == nil && c.param != "" || f != nil && f.Param != c.param {
			t.Errorf("%s: %v, want param %q", c.body, f, c.param)
		}
		if r.Params().LongCache != c.long {
			t.Errorf("%s: long %v", c.body, r.Params().LongCache)
		}
	}
}

// TestPricedCacheTimes checks that both of OpenAI's fields for the cache time have the same price,
// and that the factor applies only once.
func TestPricedCacheTimes(t *testing.T) {
	t.Parallel()
	m := &catalog.Model{ID: "m", ContextWindow: 10_000, MaxOutputTokens: 100}
	m.Price.Input, _ = money.ParsePrice("1")
	m.Price.Options = map[string]map[string]money.Factor{"prompt_cache_options.ttl": {"12h": 3 * money.One}}
	const part = `{"type":"input_text","text":"x","prompt_cache_breakpoint":{"ttl":"12h"}}`
	usage := wire.Usage{Prompt: 1_000_000}
	for _, body := range []string{
		`"input":"x","prompt_cache_options":{"ttl":"12h"}`,
		`"input":[{"role":"user","content":[` + part + `,` + part + `]}]`,
		`"input":[{"role":"user","content":[` + part + `]}],"prompt_cache_options":{"ttl":"12h"}`,
	} {
		choice, _ := m.PricingOf(checked(t, wire.FormResponses, `{`+body+`}`).Params(), 0)
		if err := m.CheckPriced(choice); err != nil || m.Cost(usage, choice).String() != "3" {
			t.Errorf("%s: %v, %s USD", body, err, m.Cost(usage, choice))
		}
	}
}

// TestWritesWithoutTheirTimesCostTheLongest checks that cache writes without a reported time cost
// the longest requested time, so that no write is charged below its cost.
func TestWritesWithoutTheirTimesCostTheLongest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		long            bool
		in              wire.Usage
		short, lasting  int64
		part, partsLong int64
	}{
		{long: false, in: wire.Usage{CacheWrite: 7}, short: 7},
		{long: true, in: wire.Usage{CacheWrite: 7}, lasting: 7},
		{long: true, in: wire.Usage{CacheWrite: 7, CacheSplit: true}, short: 7},
		{long: true, in: wire.Usage{CacheWrite: 7, CacheWrite1h: 2, CacheSplit: true}, short: 7, lasting: 2},
		{long: true, in: wire.Usage{CacheWrite: 7, Iterations: []wire.Iteration{{CacheWrite: 7}}}, lasting: 7, partsLong: 7},
		{long: true, in: wire.Usage{CacheWrite: 7, Iterations: []wire.Iteration{{CacheWrite: 7, CacheSplit: true}}}, lasting: 7, part: 7},
	} {
		x := &chatRequest{params: &wire.Parameters{LongCache: c.long}}
		got := x.count(c.in, true, nil)
		if got.CacheWrite != c.short || got.CacheWrite1h != c.lasting || got.source != ledger.SourceProvider {
			t.Errorf("%+v: %+v", c, got)
		}
		for _, i := range got.Iterations {
			if i.CacheWrite != c.part || i.CacheWrite1h != c.partsLong {
				t.Errorf("%+v: %+v", c, i)
			}
		}
	}
}

// TestValuesInsideFieldsArePriced checks that a factor of the catalog applies to the hold and to
// the charge, and that an effort costs more only if the catalog sets a factor.
func TestValuesInsideFieldsArePriced(t *testing.T) {
	t.Parallel()
	three := 3 * money.One
	m := &catalog.Model{ID: "m", ContextWindow: 10_000, MaxOutputTokens: 100}
	dollar, _ := money.ParsePrice("1")
	m.Price.Rates = catalog.Rates{Input: dollar, Output: dollar, CachedInput: dollar, CacheWrite: dollar, CacheWrite1h: dollar}
	m.Price.Options = map[string]map[string]money.Factor{
		"reasoning.mode": {"pro": three}, "reasoning.effort": {"xhigh": three}, "background_options": {"x": three},
	}
	plain := catalog.Pricing{}
	usage := wire.Usage{Prompt: 100, Completion: 100}
	for members, factor := range map[string]money.Amount{
		`"reasoning":{"mode":"pro"}`: 3, `"reasoning":{"mode":"standard"}`: 1, `"reasoning":{"effort":"xhigh"}`: 3,
		`"reasoning":{"effort":"low"}`: 1, `"background_options":"x"`: 3, `"reasoning":{"mode":null}`: 1,
		`"prompt_cache_options":{"ttl":"30m"}`: 1,
		// Without a price:
		`"reasoning":{"mode":"max"}`: 0, `"reasoning":{"mode":"PRO"}`: 0, `"reasoning":{"mode":7}`: 0, `"reasoning":{"mode":{"pro":1}}`: 0,
		`"prompt_cache_options":{"ttl":"12h"}`: 0, `"prompt_cache_options":{"ttl":["12h"]}`: 0,
	} {
		choice, routing := m.PricingOf(checked(t, wire.FormResponses, `{"input":"x",`+members+`}`).Params(), 0)
		if factor == 0 {
			if m.CheckPriced(choice) == nil {
				t.Errorf("%s has no price, and is offered", members)
			}
			continue
		}
		if err := m.CheckPriced(choice); err != nil || len(routing) > 0 {
			t.Errorf("%s: %v, routing %q", members, err, routing)
		}
		if got, want := m.Cost(usage, choice), factor*m.Cost(usage, plain); got != want {
			t.Errorf("%s: charged %s, want %s", members, got, want)
		}
		bound := wire.PromptBound{TextBytes: 100}
		if got, want := m.HighestCost(bound, 100, 1, choice), factor*m.HighestCost(bound, 100, 1, plain); got != want {
			t.Errorf("%s: held %s, want %s", members, got, want)
		}
	}
}

// TestOtherShapesAreNotPassedOn checks that values of unexpected shape are not sent, because the
// checks find nothing in them but a provider may.
func TestOtherShapesAreNotPassedOn(t *testing.T) {
	t.Parallel()
	rest := map[wire.Form]string{
		wire.FormChat:      `"messages":[{"role":"user","content":"x"}]`,
		wire.FormResponses: `"input":"x"`,
		wire.FormMessages:  `"max_tokens":5,"messages":[{"role":"user","content":"x"}]`,
	}
	refusal := func(form wire.Form, member string) (*fault.Error, error) {
		r, err := open(form, "{"+rest[form]+","+member+"}")
		if err == nil {
			m := &catalog.Model{ID: "m"}
			choice, _ := m.PricingOf(r.Params(), 0)
			err = m.CheckPriced(choice)
		}
		var f *fault.Error
		errors.As(err, &f)
		return f, err
	}
	for form := range rest {
		for member, param := range map[string]string{
			`"tools":{"type":"web_search"}`: "tools", `"tools":{"0":{"type":"web_search"}}`: "tools", `"tools":"web_search"`: "tools",
			`"tools":true`: "tools", `"\u0074ools":7`: "tools",
			`"modalities":"audio"`: "modalities", `"modalities":"image"`: "modalities", `"modalities":{"0":"image"}`: "modalities",
			`"modalities":["video"]`: "modalities", `"modalities":[" image"]`: "modalities", `"modalities":[["image"]]`: "modalities",
			`"modalities":["IMAGE"]`: "modalities", `"modalities":["text",null]`: "modalities",
		} {
			if f, err := refusal(form, member); f == nil || f.Code != fault.InvalidRequest || f.Param != param {
				t.Errorf("%s: %s: %v", form, member, err)
			}
		}
		for _, member := range []string{
			`"tools":[]`, `"tools":null`, `"modalities":["text"]`, `"modalities":["TEXT"]`, `"modalities":[]`, `"modalities":null`,
		} {
			if _, err := refusal(form, member); err != nil {
				t.Errorf("%s: %s: %v", form, member, err)
			}
		}
	}
	if _, err := refusal(wire.FormResponses, `"tools":[{"type":"namespace","name":"n","tools":{"type":"web_search"}}]`); err == nil {
		t.Error("tools of a namespace that are not a list pass")
	}
}
