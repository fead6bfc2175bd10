package completions

import (
	"fmt"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// checkTools reports the hosted tools that the request asks for. Tools of the
// client's own pass, and so do types that nobody knows to cost.
func (r *Request) checkTools() error {
	r.Tools = nil
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		if tool[0] != '{' {
			continue
		}
		kind := rawjson.Unquote(rawjson.Field(tool, "type"))
		if kind == "function" || kind == "custom" {
			continue // its schema may name a parameter as it likes
		}
		if path := form.FindStored(tool, 0); path != "" {
			return form.Stored(fmt.Sprintf("tools[%d]%s", i, path))
		}
		if rawjson.IsText(rawjson.Field(tool, "container")) {
			return form.Stored(fmt.Sprintf("tools[%d].container", i))
		}
		if kind == "builtin_function" { // a hosted tool that is named like a function
			kind = strings.TrimPrefix(rawjson.Unquote(rawjson.Field(rawjson.Field(tool, "function"), "name")), "$")
		}
		if name := form.HostedTool(kind); name != "" {
			calls, _ := rawjson.Integer(rawjson.Field(tool, "max_uses"))
			r.Host(wire.Priced{Param: fmt.Sprintf("tools[%d].type", i), Name: name, MaxCalls: max(calls, 0)})
		} else if kind == "mcp" {
			r.Bound.Unbounded = true
		}
	}
	r.CheckVendorTools()
	r.LimitCalls()
	return nil
}
