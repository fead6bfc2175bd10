package messages

import (
	"fmt"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/internal/form"
	"tollgate/internal/wire/rawjson"
)

// checkModelCalls records the model calls made by the provider in addition to the answer: to
// summarize the conversation, and to ask an advisor.
func (r *Request) checkModelCalls() error {
	const param = "context_management"
	r.ModelCalls = nil
	management := r.Doc.Raw(param)
	edits := rawjson.Field(management, "edits")
	switch {
	case management != nil && management[0] != '{':
		return fault.At(fault.InvalidRequest, param, "`{param}` must be an object with `edits`.")
	case edits != nil && edits[0] != '[':
		return fault.At(fault.InvalidRequest, param+".edits", "`{param}` must be an array of objects with a `type`.")
	}
	for name, value := range rawjson.Members(management) {
		if string(name) != "edits" && rawjson.NonNull(value) != nil {
			return unknownEdit(param + "." + form.Shorten(name))
		}
	}
	for i, edit := range rawjson.Elements(edits) {
		path := fmt.Sprintf("%s.edits[%d].type", param, i)
		switch rawjson.Unquote(rawjson.Field(edit, "type")) {
		case "clear_tool_uses_20250919", "clear_thinking_20251015": // call no model
		case "compact_20260112":
			r.ModelCalls = append(r.ModelCalls, wire.ModelCall{Param: path, Calls: 1})
		default:
			return unknownEdit(path)
		}
	}
	if r.Doc.Raw("compaction") != nil {
		r.ModelCalls = append(r.ModelCalls, wire.ModelCall{Param: "compaction", Calls: 1})
	}
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		if !isAdvisor(rawjson.Unquote(rawjson.Field(tool, "type"))) {
			continue
		}
		calls, _ := rawjson.Integer(rawjson.Field(tool, "max_uses"))
		output, _ := rawjson.Integer(rawjson.Field(tool, "max_tokens"))
		r.ModelCalls = append(r.ModelCalls, wire.ModelCall{
			Param: fmt.Sprintf("tools[%d].model", i), Model: rawjson.Unquote(rawjson.Field(tool, "model")),
			Calls: max(calls, 0), MaxOutput: max(output, 0), Rereads: true,
		})
	}
	return nil
}

// unknownEdit rejects an edit of the conversation with unknown costs.
func unknownEdit(param string) error {
	return fault.At(fault.InvalidRequest, param, "`{param}` is not known here, and may call a model at a cost of its own. "+
		"Use clear_tool_uses_20250919, clear_thinking_20251015 or compact_20260112 in `context_management.edits`.")
}

// isAdvisor reports whether a tool's type is that of an advisor, which reads only the conversation.
func isAdvisor(kind string) bool {
	return strings.HasPrefix(kind[strings.LastIndexByte(kind, ':')+1:], "advisor")
}
