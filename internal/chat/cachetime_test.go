package chat

import (
	"errors"
	"testing"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/money"
	"tollgate/internal/wire"
	"tollgate/internal/wire/completions"
	"tollgate/internal/wire/messages"
	"tollgate/internal/wire/responses"
)

// checked opens and checks a request of a form.
func checked(t *testing.T, form wire.Form, body string) wire.Request {
	t.Helper()
	type request interface {
		wire.Request
		Check() error
	}
	var r request
	var err error
	switch form {
	case wire.FormChat:
		r, err = completions.Open([]byte(body))
	case wire.FormResponses:
		r, err = responses.Open([]byte(body))
	default:
		r, err = messages.Open([]byte(body))
	}
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return r
}

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
		choice, _ := m.ChoiceOf(r.Params(), 0)
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
		choice, _ := m.ChoiceOf(checked(t, wire.FormResponses, `{`+body+`}`).Params(), 0)
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
		got := x.usage(c.in, true, nil)
		if got.CacheWrite != c.short || got.CacheWrite1h != c.lasting || x.source != ledger.SourceProvider {
			t.Errorf("%+v: %+v", c, got)
		}
		for _, i := range got.Iterations {
			if i.CacheWrite != c.part || i.CacheWrite1h != c.partsLong {
				t.Errorf("%+v: %+v", c, i)
			}
		}
	}
}
