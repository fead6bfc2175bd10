package form

import (
	"fmt"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/rawjson"
)

// LimitCalls applies max_tool_calls, which bounds the calls of every hosted
// tool.
func (r *Request) LimitCalls() {
	calls, ok := rawjson.Integer(r.Doc.Raw("max_tool_calls"))
	if !ok || calls < 1 {
		return
	}
	for i := range r.Tools {
		if r.Tools[i].MaxCalls == 0 || r.Tools[i].MaxCalls > calls {
			r.Tools[i].MaxCalls = calls
		}
	}
}

// CheckVendorTools reports hosted tools that are asked for by a field of their
// own, most of them at compatible vendors.
func (r *Request) CheckVendorTools() {
	if r.Doc.Raw("web_search_options") != nil {
		r.Host(wire.Priced{Param: "web_search_options", Name: "web_search"})
	}
	if raw := r.Doc.Raw("enable_search"); raw != nil && string(raw) != "false" {
		r.Host(wire.Priced{Param: "enable_search", Name: "web_search"})
	}
	if raw := r.Doc.Raw("search_parameters"); raw != nil && rawjson.Unquote(rawjson.Field(raw, "mode")) != "off" {
		r.Host(wire.Priced{Param: "search_parameters", Name: "web_search"})
	}
	for i, plugin := range rawjson.Elements(r.Doc.Raw("plugins")) {
		name := rawjson.Unquote(rawjson.Field(plugin, "id"))
		if name == "" || name == "web" {
			name = "web_search"
		}
		r.Host(wire.Priced{Param: fmt.Sprintf("plugins[%d].id", i), Name: name})
	}
}

// Host notes a hosted tool: what it reads is part of the prompt and lies
// outside the body.
func (r *Request) Host(tool wire.Priced) {
	r.Bound.Unbounded = true
	r.Tools = append(r.Tools, tool)
}

// HostedTool returns the name under which the catalog prices a hosted tool of
// the given type, or empty for a type that is not known to cost. Types carry
// dates and vendors' prefixes (`web_search_preview_2025_03_11`,
// `openrouter:web_search`). All that OpenRouter runs itself costs, other models
// among it.
func HostedTool(kind string) string {
	own := ""
	if i := strings.LastIndexByte(kind, ':'); i >= 0 {
		if kind[:i] == "openrouter" {
			own = kind[i+1:]
		}
		kind = kind[i+1:]
	}
	for _, known := range []struct{ prefix, name string }{
		{"web_search", "web_search"},
		{"browser_search", "web_search"},
		{"live_search", "web_search"},
		{"search_web", "web_search"},
		{"google_search", "web_search"},
		{"x_search", "x_search"},
		{"people_search", "people_search"},
		{"finance_search", "finance_search"},
		{"collections_search", "collections_search"},
		{"web_fetch", "web_fetch"},
		{"fetch_url", "fetch_url"},
		{"file_search", "file_search"},
		{"retrieval", "file_search"},
		{"code_interpreter", "code_interpreter"},
		{"code_execution", "code_execution"},
		{"image_generation", "image_generation"},
		{"hosted_shell", "hosted_shell"},
		{"advisor", "advisor"},
	} {
		if strings.HasPrefix(kind, known.prefix) {
			return known.name
		}
	}
	return own
}

// readCalls adds the calls of hosted tools that a usage counts, in every
// vendor's words.
func (u *UsageReport) readCalls(raw []byte) {
	add := func(tool string, calls []byte) {
		if n, ok := rawjson.Count(calls); ok && n > 0 && tool != "" {
			u.AddCalls(tool, n)
		}
	}
	for _, name := range []string{"server_tool_use", "server_tool_use_details", "server_side_tool_usage_details"} {
		for tool, calls := range rawjson.Members(rawjson.Field(raw, name)) {
			kind := strings.TrimSuffix(strings.TrimSuffix(string(tool), "_requests"), "_calls")
			add(HostedTool(kind), calls)
		}
	}
	for tool, details := range rawjson.Members(rawjson.Field(raw, "tool_calls_details")) {
		add(HostedTool(string(tool)), rawjson.Field(details, "invocation"))
	}
	add("web_search", rawjson.Field(raw, "num_search_queries"))
	add("web_search", rawjson.Field(rawjson.Field(rawjson.Field(raw, "plugins"), "search"), "count"))
}

// vendorTools are fields of their own by which hosted tools are asked for.
var vendorTools = []string{"web_search_options", "enable_search", "search_parameters", "plugins"}
