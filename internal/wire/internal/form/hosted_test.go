package form

import (
	"fmt"
	"testing"
)

// TestHostedTools: what a vendor runs, and bills by the call, has a name under
// which it is priced.
func TestHostedTools(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"web_search_preview_2025_03_11": "web_search", "openrouter:web_search": "web_search", "search_web": "web_search",
		"people_search": "people_search", "finance_search": "finance_search", "fetch_url": "fetch_url",
		"collections_search": "collections_search",
		// What OpenRouter runs itself, other models among it, costs.
		"openrouter:fusion": "fusion", "openrouter:advisor": "advisor", "openrouter:": "",
		"function": "", "custom": "", "computer_use_preview": "", "acme:thing": "",
	} {
		if got := HostedTool(kind); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// TestReportedToolCalls: the number of searches counts wherever a vendor says it.
func TestReportedToolCalls(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]string{
		`{"server_tool_use":{"web_search_requests":3,"web_fetch_requests":0}}`:                "map[web_search:3]",
		`{"server_side_tool_usage_details":{"web_search_calls":2,"x_search_calls":1}}`:        "map[web_search:2 x_search:1]",
		`{"tool_calls_details":{"search_web":{"invocation":4},"fetch_url":{"invocation":1}}}`: "map[fetch_url:1 web_search:4]",
		`{"num_search_queries":5}`:                "map[web_search:5]",
		`{"plugins":{"search":{"count":1}}}`:      "map[web_search:1]",
		`{"num_search_queries":-5,"plugins":[1]}`: "map[]",
	} {
		if got := fmt.Sprint(ReadUsage([]byte(usage)).ToolCalls); got != want {
			t.Errorf("%s: %s, want %s", usage, got, want)
		}
	}
}
