package responseschat

import (
	"slices"
	"strconv"

	"tollgate/internal/wire/rawjson"
)

// toolName is what a tool is called by: its name, and the namespace that it
// stands in; empty for none.
type toolName struct{ namespace, name string }

// nameOfTool reads the name of a tool, of a call or of a choice.
func nameOfTool(object []byte) toolName {
	return toolName{rawjson.Unquote(rawjson.Field(object, "namespace")), rawjson.Unquote(rawjson.Field(object, "name"))}
}

// chatTool is a tool of a responses request and the function that stands for it
// on a chat line.
type chatTool struct {
	toolName
	function   string
	custom     bool
	definition []byte
}

// chatTools are the tools of a responses request. A chat line knows no
// namespaces: there each of their tools is a function whose name holds both.
type chatTools struct {
	list       []*chatTool // in the request's order
	byName     map[toolName]*chatTool
	byFunction map[string]*chatTool
}

// chatToolsOf reads the tools, those too that stand among the items. Its error
// names one that a chat line cannot serve; the tools before that are there
// nevertheless.
func chatToolsOf(d *rawjson.RequestBody) (*chatTools, error) {
	t := &chatTools{byName: make(map[toolName]*chatTool), byFunction: make(map[string]*chatTool)}
	err := t.add(d.Raw("tools"), "", "tools")
	if err == nil {
		err = t.addItems(d.Raw("input"))
	}
	for _, tool := range t.list { // those of the client's own naming first
		if tool.namespace == "" {
			t.call(tool, tool.name)
		}
	}
	tried := make(map[string]int)
	for _, tool := range t.list {
		if tool.namespace != "" {
			t.call(tool, t.free(tool.toolName, tried))
		}
	}
	return t, err
}

// add adds tools, those of a namespace or those that stand in none.
func (t *chatTools) add(tools []byte, namespace, path string) error {
	for i, tool := range rawjson.Elements(tools) {
		kind, definition := rawjson.Unquote(rawjson.Field(tool, "type")), tool
		switch {
		case kind == "namespace" && namespace == "":
			name := rawjson.Unquote(rawjson.Field(tool, "name"))
			if name == "" {
				return notOnChat(element(path, i) + ".name")
			}
			if err := t.add(rawjson.Field(tool, "tools"), name, element(path, i)+".tools"); err != nil {
				return err
			}
			continue
		case kind == "tool_search": // what it would find is there, or the client's alone
			continue
		case kind != "function" && kind != "custom":
			return notOnChat(element(path, i) + ".type")
		}
		if nested := rawjson.Field(tool, "function"); kind == "function" && nested != nil {
			definition = nested // as the chat form has it
		}
		name := toolName{namespace, rawjson.Unquote(rawjson.Field(definition, "name"))}
		t.list = append(t.list, &chatTool{toolName: name, custom: kind == "custom", definition: definition})
	}
	return nil
}

// addItems adds the tools of items that bring further ones, but for those that
// are there.
func (t *chatTools) addItems(input []byte) error {
	if rawjson.IsText(input) {
		return nil
	}
	var known map[toolName]bool
	for i, item := range rawjson.Elements(input) {
		if kind := rawjson.Unquote(rawjson.Field(item, "type")); kind != "additional_tools" && kind != "tool_search_output" {
			continue
		}
		if known == nil {
			known = make(map[toolName]bool)
			for _, tool := range t.list {
				known[tool.toolName] = true
			}
		}
		had := len(t.list)
		err := t.add(rawjson.Field(item, "tools"), "", element("input", i)+".tools")
		more := slices.DeleteFunc(t.list[had:], func(tool *chatTool) bool {
			twin := known[tool.toolName]
			known[tool.toolName] = true
			return twin
		})
		t.list = t.list[:had+len(more)]
		if err != nil {
			return err
		}
	}
	return nil
}

// call settles what a tool is called on the line. Of two with one name the
// first counts.
func (t *chatTools) call(tool *chatTool, function string) {
	tool.function = function
	if t.byFunction[function] == nil {
		t.byFunction[function] = tool
	}
	if t.byName[tool.toolName] == nil {
		t.byName[tool.toolName] = tool
	}
}

// free returns the name for a tool of a namespace: one that no other tool has.
// tried counts the endings that were tried for names that begin alike, so that
// none is tried twice.
func (t *chatTools) free(name toolName, tried map[string]int) string {
	if twin := t.byName[name]; twin != nil {
		return twin.function
	}
	function := joined(name, "")
	beginning := function[:min(len(function), longestFunction-longestEnding)]
	for t.byFunction[function] != nil {
		tried[beginning]++
		function = joined(name, "_"+strconv.Itoa(tried[beginning]+1))
	}
	return function
}

// function returns what a tool is called on the line, also one that is not
// among the tools any more.
func (t *chatTools) function(name toolName) string {
	switch tool := t.byName[name]; {
	case tool != nil:
		return tool.function
	case name.namespace == "":
		return name.name
	}
	return joined(name, "")
}

const (
	// longestFunction is how long the name of a function may be at most
	// providers, in bytes.
	longestFunction = 64
	// longestEnding is longer than the number of any tool that fits into a body.
	longestEnding = 10
)

// joined makes one name of namespace and name, of characters that providers
// take.
func joined(name toolName, end string) string {
	out := []byte(name.namespace + "__" + name.name)
	for i, c := range out {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-') {
			out[i] = '_'
		}
	}
	return string(out[:min(len(out), longestFunction-len(end))]) + end
}
