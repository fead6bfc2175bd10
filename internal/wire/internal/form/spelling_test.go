package form_test

import (
	"reflect"
	"testing"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

func TestUsageSpellings(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]wire.Usage{
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3,"cache_write_tokens":2},` +
			`"completion_tokens_details":{"reasoning_tokens":1}}`: {Prompt: 9,
			Cached: 3, CacheWrite: 2, Completion: 4, Reasoning: 1},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"image_tokens":3,"audio_tokens":2},` +
			`"completion_tokens_details":{"image_tokens":2,"audio_tokens":1}}`: {Prompt: 9, PromptImage: 3, PromptAudio: 2,
			Completion: 4, CompletionImage: 2, CompletionAudio: 1},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_cache_hit_tokens":3,"prompt_cache_miss_tokens":6}`: {Prompt: 9,
			Cached: 3, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"cached_tokens":3}`: {Prompt: 9,
			Cached: 3, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":0},"cached_tokens":3}`: {Prompt: 9,
			Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":3,"cache_creation_input_tokens":2}}`: {Prompt: 9,
			Cached: 3, CacheWrite: 2, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cache_write_tokens":5,` +
			`"cache_write_tokens_details":{"ttl_30m_tokens":3,"ttl_12h_tokens":2}}}`: {Prompt: 9,
			CacheWrite: 3, CacheWrite1h: 2, CacheSplit: true, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cache_write_tokens":5,` +
			`"cache_write_tokens_details":{"ttl_12h_tokens":20}}}`: {Prompt: 9, CacheWrite1h: 5, CacheSplit: true, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":null,"completion_tokens_details":null}`: {Prompt: 9,
			Completion: 4},
		`{"prompt_tokens":32,"completion_tokens":9,"total_tokens":135,"completion_tokens_details":{"reasoning_tokens":94}}`: {Prompt: 32,
			Completion: 103, Reasoning: 94},
		`{"prompt_tokens":9,"total_tokens":11}`: {Prompt: 9, Completion: 2},
		`{"prompt_tokens":4,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":5}}`: {Prompt: 9,
			Cached: 5, Completion: 2},
		`{"prompt_tokens":4,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":3},` +
			`"completion_tokens_details":{"reasoning_tokens":3}}`: {Prompt: 7, Cached: 3, Completion: 5, Reasoning: 3},
		`{"prompt_tokens":4,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3},` +
			`"completion_tokens_details":{"reasoning_tokens":3}}`: {Prompt: 4, Cached: 3, Completion: 5, Reasoning: 3},
		`{"prompt_tokens":4,"completion_tokens":2,"total_tokens":6,"prompt_tokens_details":{"cached_tokens":5}}`: {Prompt: 4,
			Cached: 4, Completion: 2},
		`{"prompt_tokens":9,"completion_tokens":4,"num_cached_tokens":3}`: {Prompt: 9, Cached: 3, Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_token_details":{"cached_tokens":3}}`: {Prompt: 9, Cached: 3,
			Completion: 4},
		`{"input_tokens":9,"output_tokens":4,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":2}}`: {
			Prompt: 9,
			Cached: 1, Completion: 4, Reasoning: 2},
		`{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":99,"cache_write_tokens":99},` +
			`"completion_tokens_details":{"reasoning_tokens":99}}`: {Prompt: 9,
			Cached: 9, Completion: 4, Reasoning: 4},
		`{"prompt_tokens":5,"completion_tokens":1e30}`: {Prompt: 5, Completion: rawjson.MaxCount},
		`{"prompt_tokens":9,"completion_tokens":4,"cached_tokens":-3,"prompt_tokens_details":{"cached_tokens":-3,"cache_write_tokens":-0.5},` +
			`"completion_tokens_details":{"reasoning_tokens":-1e30},"server_tool_use":{"web_search_requests":-2}}`: {Prompt: 9,
			Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":-4,"total_tokens":11}`: {Prompt: 9,
			Completion: 2},
		`{"prompt_tokens":9.0,"completion_tokens":4.7}`: {Prompt: 9,
			Completion: 4},
		`{"prompt_tokens":9,"completion_tokens":4,"service_tier":"priority","server_tool_use":{"web_search_requests":2}}`: {Prompt: 9,
			Completion: 4, ServiceTier: "priority", ToolCalls: map[string]int64{"web_search": 2}},
	} {
		got := form.ReadUsage([]byte(raw))
		if !got.CountedPrompt || !got.CountedCompletion || !reflect.DeepEqual(got.Usage, want) {
			t.Errorf("%s: %+v; want %+v", raw, got, want)
		}
	}
	prompt, completion := form.UsageReport{Usage: wire.Usage{Prompt: 5}, CountedPrompt: true},
		form.UsageReport{Usage: wire.Usage{Completion: 5}, CountedCompletion: true}
	for raw, want := range map[string]form.UsageReport{
		"": {}, "null": {}, "{}": {}, `"x"`: {}, `{"prompt_tokens":"5","completion_tokens":"1"}`: {}, `{"total_tokens":5}`: {},
		`{"prompt_tokens":5}`: prompt, `{"prompt_tokens":5,"total_tokens":3}`: prompt, `{"prompt_tokens":5,"total_tokens":-3}`: prompt,
		`{"prompt_tokens":5,"completion_tokens":-5}`: prompt,
		`{"completion_tokens":5}`:                    completion, `{"prompt_tokens":-5,"completion_tokens":5,"cached_tokens":3}`: completion,
		`{"prompt_tokens":-5,"completion_tokens":-5,"total_tokens":-10}`: {},
	} {
		if got := form.ReadUsage([]byte(raw)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want %+v", raw, got, want)
		}
	}
}
