package chatgemini

import (
	"fmt"

	"tollgate/internal/wire/rawjson"
)

// tools returns the functionDeclarations, as the contents of an array, and the
// functionCallingConfig, either of them nil if absent.
func (r chatOnGemini) tools() (tools, config []byte, err error) {
	choice, err := r.toolChoice()
	if err != nil {
		return nil, nil, err
	}
	declare := func(function []byte, param string) error {
		declaration, err := declaration(function, param)
		if err != nil {
			return err
		}
		if choice.only == nil || choice.any || choice.has(rawjson.Field(function, "name")) {
			if tools != nil {
				tools = append(tools, ',')
			}
			tools = append(tools, declaration...)
		}
		return nil
	}
	for i, tool := range rawjson.Elements(r.Doc.Raw("tools")) {
		if kind := rawjson.Unquote(rawjson.Field(tool, "type")); kind != "function" {
			return nil, nil, unsupported(fmt.Sprintf("tools[%d].type", i), "must be function: this model takes functions of your own only.")
		}
		if err := declare(rawjson.Field(tool, "function"), fmt.Sprintf("tools[%d].function", i)); err != nil {
			return nil, nil, err
		}
	}
	for i, function := range rawjson.Elements(r.Doc.Raw("functions")) {
		if err := declare(function, fmt.Sprintf("functions[%d]", i)); err != nil {
			return nil, nil, err
		}
	}
	if tools == nil { // the form rejects a mode without functions
		return nil, nil, nil
	}
	return tools, choice.config(), nil
}

// declaration returns a function with its schema unchanged.
func declaration(function []byte, param string) ([]byte, error) {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return nil, unsupported(param+".name", "is required: each function needs a name.")
	}
	var out members
	out.add("name", string(name))
	if description := rawjson.Field(function, "description"); rawjson.IsText(description) && len(description) > 2 {
		out.add("description", string(description))
	}
	if parameters := rawjson.Field(function, "parameters"); len(parameters) > 0 && parameters[0] == '{' && !isEmptyObject(parameters) {
		out.add("parametersJsonSchema", string(parameters))
	}
	return out.object(), nil
}

func isEmptyObject(object []byte) bool {
	for range rawjson.Members(object) {
		return false
	}
	return true
}

// toolChoice is the request's tool_choice.
type toolChoice struct {
	mode string   // NONE, AUTO, ANY or empty
	any  bool     // ANY, the only mode with names
	only [][]byte // the names of the allowed functions as JSON strings; nil allows all
}

func (c toolChoice) has(name []byte) bool {
	for _, allowed := range c.only {
		if rawjson.Unquote(allowed) == rawjson.Unquote(name) {
			return true
		}
	}
	return false
}

// config returns the functionCallingConfig.
func (c toolChoice) config() []byte {
	if c.mode == "" {
		return nil
	}
	var out members
	out.add("mode", `"`+c.mode+`"`)
	if c.any && len(c.only) > 0 {
		names := []byte{}
		for i, name := range c.only {
			if i > 0 {
				names = append(names, ',')
			}
			names = append(names, name...)
		}
		out.add("allowedFunctionNames", "[", string(names), "]")
	}
	return out.object()
}

// toolChoice reads tool_choice, or the older function_call.
func (r chatOnGemini) toolChoice() (toolChoice, error) {
	param := "tool_choice"
	raw := r.Doc.Raw(param)
	if raw == nil {
		param = "function_call"
		raw = r.Doc.Raw(param)
	}
	switch {
	case raw == nil:
		return toolChoice{}, nil
	case rawjson.IsText(raw):
		switch rawjson.Unquote(raw) {
		case "none":
			return toolChoice{mode: "NONE"}, nil
		case "auto":
			return toolChoice{mode: "AUTO"}, nil
		case "required":
			return toolChoice{mode: "ANY", any: true}, nil
		}
		return toolChoice{}, unsupported(param, "must be none, auto or required, or name a function.")
	case rawjson.Unquote(rawjson.Field(raw, "type")) == "allowed_tools":
		return allowedTools(rawjson.Field(raw, "allowed_tools"))
	}
	name := rawjson.Field(raw, "name") // function_call
	if function := rawjson.Field(raw, "function"); function != nil {
		name = rawjson.Field(function, "name")
	}
	if !rawjson.IsText(name) {
		return toolChoice{}, unsupported(param, "must be none, auto or required, or name a function.")
	}
	return toolChoice{mode: "ANY", any: true, only: [][]byte{name}}, nil
}

// allowedTools reads a tool_choice of allowed tools. If no call is required, the other tools are
// not declared.
func allowedTools(allowed []byte) (toolChoice, error) {
	c := toolChoice{mode: "AUTO", only: [][]byte{}}
	if rawjson.Unquote(rawjson.Field(allowed, "mode")) == "required" {
		c.mode, c.any = "ANY", true
	}
	for i, tool := range rawjson.Elements(rawjson.Field(allowed, "tools")) {
		name := rawjson.Field(rawjson.Field(tool, "function"), "name")
		if !rawjson.IsText(name) {
			return c, unsupported(fmt.Sprintf("tool_choice.allowed_tools.tools[%d]", i), "must name a function.")
		}
		c.only = append(c.only, name)
	}
	return c, nil
}
