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
	r.checkVendorTools()
	r.limitCalls()
	return nil
}
