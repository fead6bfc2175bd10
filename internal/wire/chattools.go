package wire

import (
	"fmt"
	"strings"
)

// checkTools reports the hosted tools that the request asks for. Tools of the
// client's own pass, and so do types that nobody knows to cost.
func (r *ChatRequest) checkTools() error {
	r.Tools = nil
	for i, tool := range elements(r.doc.raw("tools")) {
		if tool[0] != '{' {
			continue
		}
		kind := unquote(field(tool, "type"))
		if kind == "function" || kind == "custom" {
			continue // its schema may name a parameter as it likes
		}
		if path := findStored(tool, 0); path != "" {
			return stored(fmt.Sprintf("tools[%d]%s", i, path))
		}
		if isText(field(tool, "container")) {
			return stored(fmt.Sprintf("tools[%d].container", i))
		}
		if kind == "builtin_function" { // a hosted tool that is named like a function
			kind = strings.TrimPrefix(unquote(field(field(tool, "function"), "name")), "$")
		}
		if name := hostedTool(kind); name != "" {
			calls, _ := integer(field(tool, "max_uses"))
			r.host(Priced{Param: fmt.Sprintf("tools[%d].type", i), Name: name, MaxCalls: max(calls, 0)})
		} else if kind == "mcp" {
			r.Bound.Unbounded = true
		}
	}
	r.checkVendorTools(r.doc)
	r.limitCalls(r.doc)
	return nil
}

// limitCalls applies max_tool_calls, which bounds the calls of every hosted
// tool.
func (a *Asked) limitCalls(d *document) {
	calls, ok := integer(d.raw("max_tool_calls"))
	if !ok || calls < 1 {
		return
	}
	for i := range a.Tools {
		if a.Tools[i].MaxCalls == 0 || a.Tools[i].MaxCalls > calls {
			a.Tools[i].MaxCalls = calls
		}
	}
}

// vendorTools are fields of their own by which hosted tools are asked for.
var vendorTools = []string{"web_search_options", "enable_search", "search_parameters", "plugins"}

// checkVendorTools reports hosted tools that are asked for by a field of their
// own, most of them at compatible vendors.
func (a *Asked) checkVendorTools(d *document) {
	if d.raw("web_search_options") != nil {
		a.host(Priced{Param: "web_search_options", Name: "web_search"})
	}
	if raw := d.raw("enable_search"); raw != nil && string(raw) != "false" {
		a.host(Priced{Param: "enable_search", Name: "web_search"})
	}
	if raw := d.raw("search_parameters"); raw != nil && unquote(field(raw, "mode")) != "off" {
		a.host(Priced{Param: "search_parameters", Name: "web_search"})
	}
	for i, plugin := range elements(d.raw("plugins")) {
		name := unquote(field(plugin, "id"))
		if name == "" || name == "web" {
			name = "web_search"
		}
		a.host(Priced{Param: fmt.Sprintf("plugins[%d].id", i), Name: name})
	}
}

// host notes a hosted tool: what it reads is part of the prompt and lies
// outside the body.
func (a *Asked) host(tool Priced) {
	a.Bound.Unbounded = true
	a.Tools = append(a.Tools, tool)
}

// hostedTool returns the name under which the catalog prices a hosted tool of
// the given type, or empty for a type that is not known to cost. Types carry
// dates and vendors' prefixes (`web_search_preview_2025_03_11`,
// `openrouter:web_search`).
func hostedTool(kind string) string {
	if i := strings.LastIndexByte(kind, ':'); i >= 0 {
		kind = kind[i+1:]
	}
	for _, known := range []struct{ prefix, name string }{
		{"web_search", "web_search"},
		{"browser_search", "web_search"},
		{"live_search", "web_search"},
		{"google_search", "web_search"},
		{"x_search", "x_search"},
		{"web_fetch", "web_fetch"},
		{"file_search", "file_search"},
		{"retrieval", "file_search"},
		{"code_interpreter", "code_interpreter"},
		{"code_execution", "code_execution"},
		{"image_generation", "image_generation"},
		{"hosted_shell", "hosted_shell"},
	} {
		if strings.HasPrefix(kind, known.prefix) {
			return known.name
		}
	}
	return ""
}
