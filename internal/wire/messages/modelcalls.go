package messages

import (
	"fmt"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
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
	for i, edit := range rawjson.Elements(edits) {
		if strings.HasPrefix(strings.ToLower(rawjson.Unquote(rawjson.Field(edit, "type"))), "compact") {
			r.ModelCalls = append(r.ModelCalls, wire.ModelCall{Param: fmt.Sprintf("context_management.edits[%d].type", i), Calls: 1})
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

// isAdvisor reports whether a tool's type is that of an advisor, which reads only the conversation.
func isAdvisor(kind string) bool {
	return strings.HasPrefix(kind[strings.LastIndexByte(kind, ':')+1:], "advisor")
}
