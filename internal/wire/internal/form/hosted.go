package form

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
	"tollgate/internal/wire/rawjson"
)

// LimitCalls applies max_tool_calls, the limit on calls of every hosted tool.
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

// readPlugins collects the plugins of OpenRouter, which are hosted tools.
func (r *Request) readPlugins() {
	for i, plugin := range rawjson.Elements(r.Doc.Raw("plugins")) {
		name := rawjson.Unquote(rawjson.Field(plugin, "id"))
		if name == "" || name == "web" {
			name = "web_search"
		}
		path := fmt.Sprintf("plugins[%d]", i)
		r.AddHosted(wire.PricedField{Param: path + ".id", Name: name, Options: ToolOptions(plugin, path)})
	}
}

// AddHosted records a hosted tool. Its results become part of the prompt, so the body does not
// bound the prompt.
func (r *Request) AddHosted(tool wire.PricedField) {
	r.Bound.Unbounded = true
	r.Tools = append(r.Tools, tool)
}

// Classify returns the type of a hosted tool of a list, or true if the client executes it. kind is the
// tool's type.
type Classify func(index int, kind string, tool []byte) (hosted string, client bool, err error)

// CheckTools checks the client tools of a list and records the hosted ones. A list in another shape is
// rejected: a lenient server could accept it, but no check reads it.
func (r *Request) CheckTools(t *field.Table, tools []byte, list string, classify Classify) error {
	if tools != nil && tools[0] != '[' {
		return fault.At(fault.InvalidRequest, list, "`%s` must be an array of tools.", list)
	}
	for i, tool := range rawjson.Elements(tools) {
		kind, err := toolType(tool, list, i)
		if err != nil {
			return err
		}
		kind, client, err := classify(i, kind, tool)
		switch {
		case err != nil:
		case client || isClientTool(t, kind, tool):
			err = checkClientTool(t, tool, list, i)
		default:
			err = r.hostTool(tool, toolPath(list, i), kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func toolPath(list string, index int) string { return fmt.Sprintf("%s[%d]", list, index) }

// toolType returns the type of a tool, or "" if it has none. It returns an error if the tool is not
// an object or its type is not a string, because then it is unknown whether the client executes it.
func toolType(tool []byte, list string, index int) (string, error) {
	if tool[0] != '{' {
		return "", fault.At(fault.InvalidRequest, toolPath(list, index), "`{param}` must be an object with a `type`.")
	}
	kind := rawjson.Field(tool, "type")
	switch {
	case string(kind) == `"function"`: // does not allocate
		return "function", nil
	case kind != nil && !rawjson.IsText(kind):
		return "", fault.At(fault.InvalidRequest, toolPath(list, index)+".type", "`{param}` must be a string.")
	}
	return rawjson.Unquote(kind), nil
}

// checkClientTool rejects members of a client tool not documented by the form, because a lenient
// server could run a hosted tool for them. null and false request nothing.
func checkClientTool(t *field.Table, tool []byte, list string, index int) error {
	for name, value := range rawjson.Members(tool) {
		if !t.ToolMember(name) && rawjson.NonNull(value) != nil && string(value) != "false" {
			return foreignMember(toolPath(list, index), name)
		}
		if string(name) != "function" {
			continue
		}
		for inner := range rawjson.Members(value) {
			if t.ToolMember(inner) {
				continue
			}
			if _, hosted := field.HostedWord(string(inner)); hosted {
				return foreignMember(toolPath(list, index)+".function", inner)
			}
		}
	}
	return nil
}

// CheckFunctions checks the older member `functions` of the chat form: client tools without a type.
func (r *Request) CheckFunctions(t *field.Table) error {
	const list = "functions"
	functions := r.Doc.Raw(list)
	if functions != nil && functions[0] != '[' {
		return fault.At(fault.InvalidRequest, list, "`{param}` must be an array of functions.")
	}
	for i, function := range rawjson.Elements(functions) {
		if function[0] != '{' {
			return fault.At(fault.InvalidRequest, toolPath(list, i), "`{param}` must be an object with a `name`.")
		}
		if err := checkClientTool(t, function, list, i); err != nil {
			return err
		}
	}
	return nil
}

// CheckChoice rejects a tool_choice whose type is a tool that is neither in `tools` nor executed by the
// client, because a lenient server could run the tool, and it has no price.
func (r *Request) CheckChoice(t *field.Table) error {
	const param = "tool_choice"
	choice := r.Doc.Raw(param)
	if choice == nil {
		return nil
	}
	if choice[0] == '"' { // auto, none, required
		if _, hosted := field.HostedWord(rawjson.Unquote(choice)); !hosted {
			return nil
		}
		return r.checkChosen(t, choice, param)
	}
	if err := r.checkChosen(t, rawjson.Field(choice, "type"), param+".type"); err != nil {
		return err
	}
	at := param
	if inner := rawjson.Field(choice, "allowed_tools"); inner != nil {
		choice, at = inner, param+".allowed_tools"
	}
	for i, tool := range rawjson.Elements(rawjson.Field(choice, "tools")) {
		if err := r.checkChosen(t, rawjson.Field(tool, "type"), toolPath(at+".tools", i)+".type"); err != nil {
			return err
		}
	}
	return nil
}

// checkChosen checks the type of a chosen tool.
func (r *Request) checkChosen(t *field.Table, raw []byte, param string) error {
	kind := rawjson.Unquote(raw)
	switch kind {
	case "", "auto", "none", "any", "required", "tool", "function", "custom", "allowed_tools":
		return nil
	}
	name := HostedTool(kind)
	if slices.ContainsFunc(r.Tools, func(hosted wire.PricedField) bool { return hosted.Name == name }) {
		return nil
	}
	if _, client := clientTool(t, kind); client {
		return nil
	}
	return fault.At(fault.InvalidRequest, param, "`{param}` chooses a tool that is not in `tools`. Add it to `tools`.")
}

// checkHostedMembers rejects members of a hosted tool that name another hosted tool, which would
// run at the price of the first one.
func checkHostedMembers(tool []byte, path, name string) error {
	for member, value := range rawjson.Members(tool) {
		if rawjson.NonNull(value) == nil || string(value) == "false" {
			continue
		}
		if other, hosted := field.HostedWord(HostedTool(string(member))); hosted && other != name {
			return foreignMember(path, member)
		}
	}
	return nil
}

// foreignMember rejects a member of a tool not documented by any reference.
func foreignMember(path string, name []byte) error {
	return fault.At(fault.InvalidRequest, path+"."+Shorten(name),
		"`{param}` is not a member of this type of tool, and a provider could take it for a hosted tool. "+
			"Leave it out, or send the hosted tool as an element of `tools` with its own `type`.")
}

// hostTool records the hosted tool at path. It returns an error if the tool refers to an object
// stored at the provider.
func (r *Request) hostTool(tool []byte, path, kind string) error {
	if kind == "" {
		return fault.At(fault.InvalidRequest, path+".type", "`%s` needs a `type` that says what kind of tool it is.", path)
	}
	if found := FindStored(tool, 0); found != "" {
		return StoredError(path + found)
	}
	if rawjson.IsText(rawjson.Field(tool, "container")) {
		return StoredError(path + ".container")
	}
	calls, _ := rawjson.Integer(rawjson.Field(tool, "max_uses"))
	name := HostedTool(kind)
	if err := checkHostedMembers(tool, path, name); err != nil {
		return err
	}
	hosted := wire.PricedField{Param: path + ".type", Name: name, MaxCalls: max(calls, 0), Options: ToolOptions(tool, path)}
	if hosted.Name == advisorTool { // its model has a price of its own, and reads the prompt (ModelCalls)
		hosted.Options = slices.DeleteFunc(hosted.Options, func(o wire.PricedField) bool { return o.Option == "model" })
		r.Tools = append(r.Tools, hosted)
		return nil
	}
	r.AddHosted(hosted)
	return nil
}

// advisorTool is Anthropic's tool to let the model ask another model.
const advisorTool = "advisor"

// ToolOptions returns the values in a hosted tool that change its price. Case is ignored, as
// servers may ignore it.
func ToolOptions(tool []byte, path string) (options []wire.PricedField) {
	return appendToolOptions(nil, tool, path, 0)
}

func appendToolOptions(options []wire.PricedField, value []byte, path string, depth int) []wire.PricedField {
	const deepest = 8
	if depth > deepest || len(value) == 0 {
		return options
	}
	for i, element := range rawjson.Elements(value) {
		options = appendToolOptions(options, element, fmt.Sprintf("%s[%d]", path, i), depth+1)
	}
	for name, inner := range rawjson.Members(value) {
		option := strings.ToLower(string(name))
		free, priced := field.ToolOption(option)
		if !priced {
			options = appendToolOptions(options, inner, path+"."+string(name), depth+1)
			continue
		}
		text := strings.Trim(Shorten(inner), `"`)
		if rawjson.NonNull(inner) != nil && text != "" && !slices.Contains(free, text) {
			options = append(options, wire.PricedField{Param: path + "." + string(name), Option: option, Name: text})
		}
	}
	return options
}

// HostedTool returns the catalog's name of a hosted tool: its type without a vendor's prefix and
// without its date (`web_search_preview_2025_03_11`, `openrouter:web_search`). Types with any other
// difference are other tools.
func HostedTool(kind string) string {
	kind = kind[strings.LastIndexByte(kind, ':')+1:]
	kind = strings.TrimRight(kind[:len(kind)-dateLength(kind)], "_")
	if name, ok := field.HostedName(kind); ok {
		return name
	}
	return kind
}

// dateLength returns the length of the date at the end of a tool's type (`_20250305` or
// `_2025_03_11`), or 0.
func dateLength(kind string) int {
	for _, shape := range []string{"_00000000", "_0000_00_00"} {
		if start := len(kind) - len(shape); start > 0 && digitsAsZeros(kind[start:]) == shape {
			return len(shape)
		}
	}
	return 0
}

func digitsAsZeros(text string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return '0'
		}
		return r
	}, text)
}

// clientTool is field.Table.ClientTool for a type with its date, if it has one.
func clientTool(t *field.Table, kind string) (condition string, ok bool) {
	return t.ClientTool(kind, kind[len(kind)-dateLength(kind):])
}

// isClientTool reports whether the client executes a tool of a form. Every other tool is hosted.
func isClientTool(t *field.Table, kind string, tool []byte) bool {
	condition, ok := clientTool(t, kind)
	path, want, conditional := strings.Cut(condition, "=")
	if !ok || !conditional {
		return ok
	}
	for name := range strings.SplitSeq(path, ".") {
		tool = rawjson.Field(tool, name)
	}
	return rawjson.Unquote(tool) == want
}

// readCalls adds the calls of hosted tools counted in a usage of any vendor.
func (u *UsageReport) readCalls(report *rawjson.Index) {
	add := func(tool string, calls []byte) {
		if n, ok := rawjson.Count(calls); ok && n > 0 && tool != "" {
			u.AddCalls(tool, n)
		}
	}
	for _, name := range []string{"server_tool_use", "server_tool_use_details", "server_side_tool_usage_details"} {
		for tool, calls := range rawjson.Members(report.Field(name)) {
			kind := strings.TrimSuffix(strings.TrimSuffix(string(tool), "_requests"), "_calls")
			add(HostedTool(kind), calls)
		}
	}
	for tool, details := range rawjson.Members(report.Field("tool_calls_details")) {
		add(HostedTool(string(tool)), rawjson.Field(details, "invocation"))
	}
	add("web_search", report.Field("num_search_queries"))
	add("web_search", rawjson.Field(rawjson.Field(report.Field("plugins"), "search"), "count"))
}
