package completions

import (
	"strings"

	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// isBareFunction reports whether a tool has only a `function` and no type. Some clients send this.
func isBareFunction(tool []byte) bool {
	for name := range rawjson.Members(tool) {
		if string(name) != "function" {
			return false
		}
	}
	return rawjson.Field(tool, "function") != nil
}

// checkTools records the hosted tools of the request.
func (r *Request) checkTools() error {
	r.Tools = nil
	const list = "tools"
	tools := r.Doc.Raw(list)
	if err := form.CheckToolList(tools, list); err != nil {
		return err
	}
	for i, tool := range rawjson.Elements(tools) {
		kind, err := form.ToolType(tool, list, i)
		if err != nil {
			return err
		}
		if kind == "" && isBareFunction(tool) || form.IsClientTool(fields, kind, tool) {
			if err := form.CheckClientTool(fields, tool, list, i); err != nil {
				return err
			}
			continue
		}
		if kind == "builtin_function" { // Moonshot's hosted tools have the form of a function
			kind = strings.TrimPrefix(rawjson.Unquote(rawjson.Field(rawjson.Field(tool, "function"), "name")), "$")
		}
		if err := r.HostTool(tool, form.ToolPath(list, i), kind); err != nil {
			return err
		}
	}
	r.CheckVendorTools()
	r.LimitCalls()
	return nil
}
