package form

import (
	"fmt"
	"strings"
	"testing"
)

// TestHostedTools checks that a hosted tool is priced by its type without the vendor's prefix, the
// date and the vendors' variants of its name.
func TestHostedTools(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"web_search_preview_2025_03_11": "web_search", "web_search_20260209": "web_search", "openrouter:web_search": "web_search",
		"search_web": "web_search", "people_search": "people_search", "fetch_url": "fetch_url", "openrouter:fusion": "fusion",
		"advisor_20260301": "advisor", "openrouter:": "", "acme:thing": "thing", "deep_research": "deep_research",
		// Any other difference is another tool.
		"web_search_deep": "web_search_deep", "Web_Search": "Web_Search", "web-search": "web-search", " web_search": " web_search",
		"web_search_2025": "web_search_2025", "web_searcher": "web_searcher", "20250305": "20250305",
	} {
		if got := HostedTool(kind); got != want {
			t.Errorf("%q: %q, want %q", kind, got, want)
		}
	}
}

// TestToolOptions checks that a value with a price of its own is found at any depth and in any
// case, and that the value of the ordinary price is not.
func TestToolOptions(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{
		`{"type":"image_generation"}`:                                     "",
		`{"type":"image_generation","quality":"high","size":"1536x1024"}`: "t.quality=high t.size=1536x1024",
		`{"type":"image_generation","quality":"auto","model":"image-2"}`:  "t.model=image-2",
		`{"type":"advisor_20260301","name":"advisor","model":"big"}`:      "t.model=big",
		`{"type":"code_interpreter","container":{"memory_limit":"64g"}}`:  "t.container.memory_limit=64g",
		`{"type":"web_search","search_context_size":"high"}`:              "t.search_context_size=high",
		`{"type":"web_search","search_context_size":"medium"}`:            "",
		`{"type":"openrouter:web_search","parameters":{"Engine":"exa"}}`:  "t.parameters.Engine=exa",
		`{"type":"x","a":[{"MODEL":"m"}]}`:                                "t.a[0].MODEL=m",
		`{"type":"x","model":null}`:                                       "",
		`{"type":"x","model":{"id":"m"}}`:                                 `t.model={"id":"m"}`,
		`{"type":"image_generation","partial_images":3}`:                  "t.partial_images=3",
	} {
		var got []string
		for _, o := range ToolOptions([]byte(tool), "t") {
			got = append(got, o.Param+"="+o.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", tool, got, want)
		}
	}
}

// TestReportedToolCalls checks that searches count wherever a vendor reports them.
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
