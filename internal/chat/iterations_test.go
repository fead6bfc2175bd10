package chat

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/wire"
)

// callingCall returns a messages request for a model whose provider may call other models. The
// prompt is long enough for the hold to cover the provider's report.
func callingCall(t testing.TB, fields string, stream bool) AcceptedRequest {
	t.Helper()
	s := snapshotOf(t, `
models:
  - {id: sonnet, kind: chat, forms: [messages], context_window: 1000000, max_output_tokens: 64000,
     price: {input: 1, output: 10, cached_input: 0.1, cache_write: 1.25, above: [{prompt_tokens: 200000, input: 2, output: 15}],
       tools: {advisor: 0}}}
  - {id: opus, kind: chat, forms: [messages], context_window: 1000000, max_output_tokens: 64000, price: {input: 5, output: 25,
	cached_input: 0.5}}
  - {id: haiku, kind: chat, forms: [messages], context_window: 1000000, max_output_tokens: 64000, price: {input: 0.1, output: 0.5}}
  - {id: retired, kind: chat, state: retired, forms: [messages], context_window: 1000, max_output_tokens: 640, price: {input: 5,
	output: 25}}
lines:
  - {id: only, provider: script, models: {sonnet: claude-sonnet-4-6, opus: claude-opus-4-7, retired: claude-old},
	timeouts: {first_token: 10s, idle: 20s, total: 30s}}
  - {id: other, provider: script, models: {haiku: claude-haiku-5-5}}
`, wire.FormMessages)
	return accepted(t, s, wire.FormMessages, fmt.Sprintf(
		`{"model":"sonnet","max_tokens":4096,"messages":[{"role":"user","content":%q}],"stream":%v,%s}`,
		strings.Repeat("gold ", 50_000), stream, fields))
}

const (
	compacting = `"context_management":{"edits":[{"type":"compact_20260112"}]}`
	advised    = `"tools":[{"type":"advisor_20260301","name":"advisor","model":"claude-opus-4-7","max_uses":2}]`
)

// TestIterationsAreCharged checks that each call of a model costs the prices of the called model by
// the length of its own prompt, and that the hold covers the charge.
func TestIterationsAreCharged(t *testing.T) {
	t.Parallel()
	advice := func(model string) string {
		return `{"input_tokens":1000,"output_tokens":300,"iterations":[{"type":"message","input_tokens":1000,"output_tokens":300},` +
			`{"type":"advisor_message","model":"` + model + `","input_tokens":100000,"cache_read_input_tokens":100000,
				"output_tokens":2000}]}`
	}
	const advisedCost = "0.604" // 0.001 + 0.003, and 0.5 + 0.05 + 0.05
	for name, test := range map[string]struct{ fields, usage, cost string }{
		"compaction": {compacting, `{"input_tokens":23000,"output_tokens":1000,"iterations":[
			{"type":"compaction","input_tokens":180000,"output_tokens":3500},
				{"type":"message","input_tokens":23000,"output_tokens":1000}]}`, "0.248"},
		"compaction on demand": {`"compaction":{"type":"summarize"}`, `{"input_tokens":0,"output_tokens":0,"iterations":[
			{"type":"compaction","input_tokens":180000,"output_tokens":3500}]}`, "0.215"},
		"compaction that paused": {`"context_management":{"edits":[{"type":"compact_20260112","pause_after_compaction":true}]}`,
			`{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500}]}`,
			"0.215"},
		"compaction from the cache": {compacting,
			`{"input_tokens":0,"output_tokens":100,"iterations":[{"type":"compaction","input_tokens":10000,
			"cache_read_input_tokens":100000,"cache_creation_input_tokens":10000,"output_tokens":0},
				{"type":"message","input_tokens":0,"output_tokens":100}]}`,
			"0.0335"}, // 0.01 + 0.01 + 0.0125 + 0.001
		"advisor":                   {advised, advice("claude-opus-4-7"), advisedCost},
		"advisor by our id":         {advised, advice("opus"), advisedCost},
		"advisor with a date":       {advised, advice("claude-opus-4-7-20260416"), advisedCost},
		"advisor at Amazon":         {advised, advice("us.anthropic.claude-opus-4-7-20260416-v1:0"), advisedCost},
		"advisor at Google":         {advised, advice("claude-opus-4-7@20260416"), advisedCost},
		"advisor that nobody knows": {advised, advice("claude-secret"), advisedCost},
		"advisor that is the model": {`"tools":[{"type":"advisor_20260301","name":"advisor","model":"sonnet"}]`,
			advice("claude-sonnet-4-6-20260101"), "0.134"},
		"a call of an unasked model": {compacting, advice("claude-haiku-5-5"), "0.025"}, // no cheaper reading of it: 0.004 + 0.02 + 0.001
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				t.Parallel()
				parts := []string{fakeprovider.NativeBill(test.usage)}
				if stream {
					parts = fakeprovider.NativeBillStream(`{"input_tokens":0,"output_tokens":1}`, test.usage)
				}
				tr := newTrial(t, reply{pieces: parts})
				tr.mustSend(callingCall(t, test.fields, stream))
				end, size := tr.books.ends[0], tr.books.amounts[0].Amount
				if end.Cost.String() != test.cost {
					t.Errorf("charged %s, want %s; tokens %+v", end.Cost, test.cost, end.Tokens)
				}
				if size < end.Cost {
					t.Errorf("held %s for %s", size, end.Cost)
				}
			})
		}
	}
}

// TestCalledModelsNeedPrices checks that models called by the provider must be open models of the
// catalog.
func TestCalledModelsNeedPrices(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"claude-mythos-5", "claude-old", "retired", "claude-opus-4", "CLAUDE-OPUS-4-7", "claude-opus-4-7 "} {
		tr := newTrial(t)
		out := tr.send(callingCall(t, fmt.Sprintf(`"tools":[{"type":"advisor_20260301","name":"advisor","model":%q}]`, model), false))
		if f := wantFault(t, out, fault.InvalidRequest); f.Param != "tools[0].model" || len(tr.provider.calls) != 0 {
			t.Errorf("%s: param %s, %d calls", model, f.Param, len(tr.provider.calls))
		}
	}
}

// TestHoldsOfModelCalls checks that the hold includes the second reading of the prompt, the
// summary, and every call of an advisor.
func TestHoldsOfModelCalls(t *testing.T) {
	t.Parallel()
	hold := func(fields string) int64 {
		tr := newTrial(t, pieces(fakeprovider.NativeBill(`{"input_tokens":1,"output_tokens":1}`)))
		tr.mustSend(callingCall(t, fields, false))
		return int64(tr.books.amounts[0].Amount)
	}
	plain := hold(`"metadata":{}`)
	if more, want := hold(compacting)-plain, int64(250_000*2*1.25*1000+64000*15*1000); more < want {
		t.Errorf("compaction adds %d nano-dollars, want at least %d", more, want)
	}
	one := hold(strings.Replace(advised, `"max_uses":2`, `"max_uses":1,"max_tokens":2048`, 1)) - plain
	if want := int64(250_000*5*1000 + 2048*25*1000 + 250_000*2*1000); one < want {
		t.Errorf("one call of an advisor adds %d, want at least %d", one, want)
	}
	if two := hold(strings.Replace(advised, `"max_uses":2`, `"max_uses":2,"max_tokens":2048`, 1)) - plain; two < 2*one {
		t.Errorf("two calls add %d, one adds %d", two, one)
	}
}

// TestBrokenStreamsWithModelCalls checks that the gateway's own count replaces the provider's final
// report: the prompt before a summary, and one reading of the prompt for each call of an advisor
// seen in the stream.
func TestBrokenStreamsWithModelCalls(t *testing.T) {
	t.Parallel()
	start := fakeprovider.NativeStart(5)
	text := fakeprovider.NativeEvent("content_block_start",
		`"index":0,"content_block":{"type":"text","text":""}`) + fakeprovider.NativeText("Hello")
	call := fakeprovider.NativeEvent("content_block_start",
		`"index":1,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"advisor","input":{}}`)
	cost := func(fields string, parts ...string) float64 {
		tr := newTrial(t, reply{pieces: parts})
		tr.mustSend(callingCall(t, fields, true))
		return float64(tr.books.ends[0].Cost) / 1e9
	}
	if got := cost(`"metadata":{}`, start, text); got > 0.001 {
		t.Errorf("without a summary: %v USD for a prompt of 5 tokens", got)
	}
	if got := cost(compacting, start, text); got < 0.045 { // 50,000 words
		t.Errorf("with a summary: %v USD", got)
	}
	start = fakeprovider.NativeStart(50_000)
	alone, asked := cost(advised, start, text), cost(advised, start, text, call)
	if more := asked - alone; more < 0.25 {
		t.Errorf("an advisor that was asked adds %v USD", more)
	}
}

// compactingCall is a responses request with a prompt of 250,000 bytes.
func compactingCall(t testing.TB, fields string, stream bool) AcceptedRequest {
	t.Helper()
	s := snapshotOf(t, `
models:
  - {id: o, kind: chat, forms: [responses], context_window: 1000000, max_output_tokens: 10000, price: {input: 1, output: 10}}
lines:
  - {id: only, provider: script, models: {o: gpt-o}, timeouts: {first_token: 10s, idle: 20s, total: 30s}}
`, wire.FormResponses)
	return accepted(t, s, wire.FormResponses, fmt.Sprintf(`{"model":"o","max_output_tokens":100,"input":%q,"stream":%v,%s}`,
		strings.Repeat("gold ", 50_000), stream, fields))
}

// TestCompactionOfResponses checks the hold and the charge of a compaction. The hold covers a
// second reading of the prompt and a summary; the charge follows the usage.
func TestCompactionOfResponses(t *testing.T) {
	t.Parallel()
	const used = `{"input_tokens":440000,"output_tokens":9000,"total_tokens":449000}`
	for fields, want := range map[string]string{
		`"context_management":[{"type":"compaction","compact_threshold":1000}]`:           "0.53",
		`"context_management":[{"compact_threshold":1000,"type":"compaction"},{}]`:        "0.53",
		`"context_management":[{"type":"Compaction"}]`:                                    "0.53",
		`"context_management":[{"type":"compaction_20270101"}]`:                           "0.53",
		`"context_management":["compaction"]`:                                             "0.53",
		`"context_management":[{"type":null}],"prompt_cache_key":"a"`:                     "0.53",
		`"include":["reasoning.encrypted_content"],"context_management":[{"type":"any"}]`: "0.53",
	} {
		for _, stream := range []bool{false, true} {
			parts := []string{fakeprovider.ResponsesObject("completed", used, fakeprovider.ResponsesMessage("Hello"))}
			if stream {
				parts = append(fakeprovider.ResponsesBegin(), fakeprovider.ResponsesText("Hello"),
					fakeprovider.ResponsesEnd("completed", used, fakeprovider.ResponsesMessage("Hello")))
			}
			tr := newTrial(t, reply{pieces: parts})
			tr.mustSend(compactingCall(t, fields, stream))
			size := tr.books.amounts[0].Amount
			if got := tr.books.ends[0].Cost; got.String() != want || size < got {
				t.Errorf("%s, stream %v: charged %s, want %s; held %s", fields, stream, got, want, size)
			}
		}
	}
}
