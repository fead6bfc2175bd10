package responseschat

import (
	"slices"
	"strconv"

	"tollgate/internal/wire/rawjson"
)

// qualifiedName is the name of a tool in a namespace, or in none.
type qualifiedName struct{ namespace, name string }

// nameOfTool reads the name of a tool, a call or a choice.
func nameOfTool(object []byte) qualifiedName {
	return qualifiedName{rawjson.Unquote(rawjson.Field(object, "namespace")), rawjson.Unquote(rawjson.Field(object, "name"))}
}

// chatTool is a tool of a responses request, and the name of the function replacing it on a chat
// line.
type chatTool struct {
	qualifiedName
	function   string
	custom     bool
	definition []byte
}

// chatTools are the tools of a responses request. A chat line has no namespaces: there, each of
// their tools is a function with both names joined.
type chatTools struct {
	list       []*chatTool // in the request's order
	byName     map[qualifiedName]*chatTool
	byFunction map[string]*chatTool
}

// chatToolsOf reads the tools, including those in items. It returns an error for a tool not
// supported by chat lines, together with the tools before it.
func chatToolsOf(d *rawjson.RequestBody) (*chatTools, error) {
	t := &chatTools{byName: make(map[qualifiedName]*chatTool), byFunction: make(map[string]*chatTool)}
	err := t.add(d.Raw("tools"), "", "tools")
	if err == nil {
		err = t.addItems(d.Raw("input"))
	}
	for _, tool := range t.list { // names chosen by the client come first
		if tool.namespace == "" {
			t.setFunction(tool, tool.name)
		}
	}
	suffixes := make(map[string]int)
	for _, tool := range t.list {
		if tool.namespace != "" {
			t.setFunction(tool, t.uniqueFunction(tool.qualifiedName, suffixes))
		}
	}
	return t, err
}

// add adds tools, of a namespace or of none.
func (t *chatTools) add(tools []byte, namespace, path string) error {
	for i, tool := range rawjson.Elements(tools) {
		kind, definition := rawjson.Unquote(rawjson.Field(tool, "type")), tool
		switch {
		case kind == "namespace" && namespace == "":
			name := rawjson.Unquote(rawjson.Field(tool, "name"))
			if name == "" {
				return unsupported(element(path, i) + ".name")
			}
			if err := t.add(rawjson.Field(tool, "tools"), name, element(path, i)+".tools"); err != nil {
				return err
			}
			continue
		case kind == "tool_search": // the tools it would find are in the request, or only the client's
			continue
		case kind != "function" && kind != "custom":
			return unsupported(element(path, i) + ".type")
		}
		if nested := rawjson.Field(tool, "function"); kind == "function" && nested != nil {
			definition = nested // in the chat form
		}
		name := qualifiedName{namespace, rawjson.Unquote(rawjson.Field(definition, "name"))}
		t.list = append(t.list, &chatTool{qualifiedName: name, custom: kind == "custom", definition: definition})
	}
	return nil
}

// addItems adds the tools in items, except those already added.
func (t *chatTools) addItems(input []byte) error {
	if rawjson.IsText(input) {
		return nil
	}
	var known map[qualifiedName]bool
	for i, item := range rawjson.Elements(input) {
		if kind := rawjson.Unquote(rawjson.Field(item, "type")); kind != "additional_tools" && kind != "tool_search_output" {
			continue
		}
		if known == nil {
			known = make(map[qualifiedName]bool)
			for _, tool := range t.list {
				known[tool.qualifiedName] = true
			}
		}
		had := len(t.list)
		err := t.add(rawjson.Field(item, "tools"), "", element("input", i)+".tools")
		more := slices.DeleteFunc(t.list[had:], func(tool *chatTool) bool {
			twin := known[tool.qualifiedName]
			known[tool.qualifiedName] = true
			return twin
		})
		t.list = t.list[:had+len(more)]
		if err != nil {
			return err
		}
	}
	return nil
}

// setFunction sets the function name of a tool. Of two tools with the same name the first counts.
func (t *chatTools) setFunction(tool *chatTool, function string) {
	tool.function = function
	if t.byFunction[function] == nil {
		t.byFunction[function] = tool
	}
	if t.byName[tool.qualifiedName] == nil {
		t.byName[tool.qualifiedName] = tool
	}
}

// uniqueFunction returns an unused function name for a tool of a namespace. suffixes counts the
// suffixes tried for each beginning, so that none is tried twice.
func (t *chatTools) uniqueFunction(name qualifiedName, suffixes map[string]int) string {
	if twin := t.byName[name]; twin != nil {
		return twin.function
	}
	function := joinName(name, "")
	beginning := function[:min(len(function), maxFunctionName-maxSuffix)]
	for t.byFunction[function] != nil {
		suffixes[beginning]++
		function = joinName(name, "_"+strconv.Itoa(suffixes[beginning]+1))
	}
	return function
}

// functionFor returns the function name of a tool, even if it is no longer among the tools.
func (t *chatTools) functionFor(name qualifiedName) string {
	switch tool := t.byName[name]; {
	case tool != nil:
		return tool.function
	case name.namespace == "":
		return name.name
	}
	return joinName(name, "")
}

const (
	// maxFunctionName is the limit on the name of a function at most providers, in bytes.
	maxFunctionName = 64
	// maxSuffix is longer than the number of any tool that fits into a body.
	maxSuffix = 10
)

// joinName joins namespace and name in an alphabet accepted by providers.
func joinName(name qualifiedName, end string) string {
	out := []byte(name.namespace + "__" + name.name)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			out[i] = '_'
		}
	}
	return string(out[:min(len(out), maxFunctionName-len(end))]) + end
}
