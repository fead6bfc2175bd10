package messages

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/sse"
)

// TestIterationsAddUp checks that each model call counts once, whether or not the totals include
// it.
func TestIterationsAddUp(t *testing.T) {
	t.Parallel()
	type iterations = []wire.Iteration
	for name, test := range map[string]struct {
		usage string
		want  wire.Usage
	}{
		"compaction": {`{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction","input_tokens":180000,
			"output_tokens":3500},
			{"type":"message","input_tokens":23000,"output_tokens":1000}]}`,
			wire.Usage{Prompt: 203000, Completion: 4500, Iterations: iterations{{Prompt: 23000, Completion: 1000}, {Prompt: 180000,
				Completion: 3500}}}},
		"compaction, no answer": {`{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":180000,
			"output_tokens":3500}]}`,
			wire.Usage{Prompt: 180000, Completion: 3500, Iterations: iterations{{Prompt: 180000, Completion: 3500}}}},
		"compaction alone beside totals": {`{"input_tokens":23000,"output_tokens":1000,"iterations":[{"type":"compaction",
			"input_tokens":10,"output_tokens":20}]}`,
			wire.Usage{Prompt: 23010, Completion: 1020, Iterations: iterations{{Prompt: 23000, Completion: 1000}, {Prompt: 10,
				Completion: 20}}}},
		"compaction twice, cached": {`{"input_tokens":5,"output_tokens":6,"iterations":[
			{"type":"compaction","input_tokens":1,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,
				"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":2},
			{"type":"compaction","input_tokens":3,"output_tokens":4},{"type":"message","input_tokens":5,"output_tokens":6}]}`,
			wire.Usage{Prompt: 139, Cached: 100, CacheWrite: 10, CacheWrite1h: 20, Completion: 12, Iterations: iterations{{Prompt: 5,
				Completion: 6},
				{Prompt: 131, Cached: 100, CacheWrite: 10, CacheWrite1h: 20, CacheSplit: true, Completion: 2}, {Prompt: 3, Completion: 4}}}},
		"advisor": {`{"input_tokens":412,"output_tokens":531,"iterations":[
			{"type":"message","input_tokens":412,"output_tokens":89},
			{"type":"advisor_message","model":"claude-opus-4-7","input_tokens":823,"cache_read_input_tokens":7,"output_tokens":1612},
			{"type":"message","input_tokens":1348,"cache_read_input_tokens":412,"output_tokens":442}]}`,
			wire.Usage{Prompt: 3002, Cached: 419, Completion: 2143, Iterations: iterations{{Prompt: 412, Completion: 89},
				{Prompt: 1760, Cached: 412, Completion: 442},
				{Model: "claude-opus-4-7", Called: true, Prompt: 830, Cached: 7, Completion: 1612}}}},
		"fallback": {`{"input_tokens":10,"output_tokens":20,"iterations":[{"type":"message","model":"a","input_tokens":9,
			"output_tokens":1},
			{"type":"fallback_message","model":"b","input_tokens":10,"output_tokens":20}]}`,
			wire.Usage{Prompt: 19, Completion: 21, Iterations: iterations{{Model: "a", Prompt: 9, Completion: 1}, {Model: "b",
				Prompt: 10, Completion: 20}}}},
		"unknown call of another model": {`{"input_tokens":10,"output_tokens":20,"iterations":[{"type":"critic","model":"b",
			"input_tokens":3,"output_tokens":4}]}`,
			wire.Usage{Prompt: 13, Completion: 24, Iterations: iterations{{Prompt: 10, Completion: 20}, {Model: "b", Called: true,
				Prompt: 3, Completion: 4}}}},
		"totals count more": {`{"input_tokens":10,"output_tokens":20,
			"iterations":[{"type":"message","input_tokens":3,"output_tokens":4}]}`,
			wire.Usage{Prompt: 10, Completion: 20, Iterations: iterations{{Prompt: 10, Completion: 20}}}},
		"null":  {`{"input_tokens":10,"output_tokens":20,"iterations":null}`, wire.Usage{Prompt: 10, Completion: 20}},
		"empty": {`{"input_tokens":10,"output_tokens":20,"iterations":[]}`, wire.Usage{Prompt: 10, Completion: 20}},
		"no list": {`{"input_tokens":10,"output_tokens":20,"iterations":{"type":"compaction","input_tokens":5}}`,
			wire.Usage{Prompt: 10, Completion: 20}},
		"odd entries": {`{"input_tokens":10,"output_tokens":20,"iterations":[7,"x",null,[],{"type":"compaction","input_tokens":-5,
			"output_tokens":"9"}]}`, wire.Usage{Prompt: 10, Completion: 20}},
		"without bound": {`{"input_tokens":0,"output_tokens":0,"iterations":[` + strings.Repeat(`{"type":"compaction",
			"input_tokens":1099511627776},`, 3) + `{}]}`,
			wire.Usage{Prompt: rawjson.MaxCount, Iterations: iterations{{Prompt: rawjson.MaxCount}, {Prompt: rawjson.MaxCount},
				{Prompt: rawjson.MaxCount}}}},
	} {
		var m usageSum
		m.merge([]byte(test.usage), true)
		if got := m.result(nil); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, test.want)
		}
		if !m.known() {
			t.Errorf("%s: not the last word", name)
		}
	}
}

// TestIterationsAreBounded checks that a list of any length is counted completely and kept short.
func TestIterationsAreBounded(t *testing.T) {
	t.Parallel()
	var m usageSum
	entry := `{"type":"compaction","input_tokens":2,"output_tokens":1},
		{"type":"advisor_message","model":"m","input_tokens":3,"output_tokens":1}`
	m.merge(fmt.Appendf(nil, `{"input_tokens":1,"output_tokens":1,"iterations":[%s]}`, strings.Repeat(entry+",", 999)+entry), true)
	u := m.result(nil)
	if u.Prompt != 5001 || u.Completion != 2001 || len(u.Iterations) > maxIterations+1 {
		t.Errorf("%d and %d tokens in %d iterations", u.Prompt, u.Completion, len(u.Iterations))
	}
}

// TestIterationsInStreams checks that the list comes with the last event, and that a shorter list
// does not replace it.
func TestIterationsInStreams(t *testing.T) {
	t.Parallel()
	m := new(meter)
	for _, data := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":1,"iterations":[]}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"compaction","content":null}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"compaction_delta","content":"We spoke of gold."}}`,
		`{"type":"message_delta","delta":{"stop_reason":"compaction"},"usage":{"input_tokens":0,"output_tokens":0,` +
			`"iterations":[{"type":"compaction","input_tokens":180000,"output_tokens":3500}]}}`,
		`{"type":"message_delta","delta":{"stop_reason":"compaction"},"usage":{"output_tokens":2,"iterations":[]}}`,
	} {
		if _, err := m.Read(sse.Event{Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	u, known := m.Usage()
	if !known || u.Prompt != 180000 || u.Completion != 3502 {
		t.Errorf("known %v, %+v", known, u)
	}
}

// TestModelCallsAreReported checks the limits of model calls made by the provider.
func TestModelCallsAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fields string
		want   []wire.ModelCall
	}{
		"threshold": {`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"},
			{"type":"compact_20260112","pause_after_compaction":true}]}`,
			[]wire.ModelCall{{Param: "context_management.edits[1].type", Calls: 1}}},
		"on demand": {`"compaction":{"type":"summarize"}`, []wire.ModelCall{{Param: "compaction", Calls: 1}}},
		"advisor": {`"tools":[{"type":"advisor_20260301","name":"advisor","model":"m"}]`,
			[]wire.ModelCall{{Param: "tools[0].model", Model: "m", Rereads: true}}},
		"later advisor": {`"tools":[{"type":"advisor_20270101","name":"advisor","model":"m"}]`,
			[]wire.ModelCall{{Param: "tools[0].model", Model: "m", Rereads: true}}},
		"limits": {`"tools":[{"name":"a","input_schema":{}},{"type":"advisor_20260301","name":"advisor","model":"m",
			"max_uses":3,"max_tokens":2048}]`,
			[]wire.ModelCall{{Param: "tools[1].model", Model: "m", Calls: 3, MaxOutput: 2048, Rereads: true}}},
		"a client's tool": {`"tools":[{"name":"advisor","input_schema":{}}]`, nil},
		"null":            {`"compaction":null,"context_management":null`, nil},
		"only clearing":   {`"context_management":{"edits":[{"type":"clear_thinking_20251015"}]}`, nil},
	} {
		r, err := Open([]byte(`{"model":"x","max_tokens":10,"messages":[{"role":"user","content":"hi"}],` + test.fields + `}`))
		if err == nil {
			err = r.Check()
		}
		if err != nil || !reflect.DeepEqual(r.ModelCalls, test.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, r.ModelCalls, err, test.want)
		}
		if r.Bound.Unbounded {
			t.Errorf("%s: the prompt counts as the whole window", name)
		}
	}
}
