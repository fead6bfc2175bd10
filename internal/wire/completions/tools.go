package completions

import (
	"strings"

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
	err := r.CheckTools(fields, r.Doc.Raw("tools"), "tools", func(_ int, kind string, tool []byte) (string, bool, error) {
		if kind == "builtin_function" { // Moonshot's hosted tools have the form of a function
			kind = strings.TrimPrefix(rawjson.Unquote(rawjson.Field(rawjson.Field(tool, "function"), "name")), "$")
		}
		return kind, kind == "" && isBareFunction(tool), nil
	})
	if err != nil {
		return err
	}
	if err := r.CheckFunctions(fields); err != nil {
		return err
	}
	r.CheckVendorTools()
	r.LimitCalls()
	return r.CheckChoice(fields)
}
