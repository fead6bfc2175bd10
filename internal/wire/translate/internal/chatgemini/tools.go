package chatgemini

import (
	"fmt"

	"tollgate/internal/wire/rawjson"
)

// geminiTools returns the functionDeclarations, as the inside of an array, and
// the functionCallingConfig; nil where there is none.
func (r chatOnGemini) geminiTools() (tools, config []byte, err error) {
	choice, err := r.geminiToolChoice()
	if err != nil {
		return nil, nil, err
	}
	declare := func(function []byte, param string) error {
		declaration, err := geminiDeclaration(function, param)
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
			return nil, nil, cannotGemini(fmt.Sprintf("tools[%d].type", i), "must be function: this model takes functions of your own only.")
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
	if tools == nil { // a mode without functions is refused there
		return nil, nil, nil
	}
	return tools, choice.config(), nil
}

// geminiDeclaration writes a function. Its schema goes as it is.
func geminiDeclaration(function []byte, param string) ([]byte, error) {
	name := rawjson.Field(function, "name")
	if !rawjson.IsText(name) || len(name) == 2 {
		return nil, cannotGemini(param+".name", "is required: each function needs a name.")
	}
	var out geminiFields
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

// geminiToolChoice is what tool_choice asks for.
type geminiToolChoice struct {
	mode string   // NONE, AUTO or ANY; empty: it does not say
	any  bool     // ANY: only then the form takes names
	only [][]byte // the names that may be called, as JSON strings; nil: all
}

func (c geminiToolChoice) has(name []byte) bool {
	for _, allowed := range c.only {
		if rawjson.Unquote(allowed) == rawjson.Unquote(name) {
			return true
		}
	}
	return false
}

// config writes the functionCallingConfig.
func (c geminiToolChoice) config() []byte {
	if c.mode == "" {
		return nil
	}
	var out geminiFields
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

// geminiToolChoice reads tool_choice, or the older function_call.
func (r chatOnGemini) geminiToolChoice() (geminiToolChoice, error) {
	param := "tool_choice"
	raw := r.Doc.Raw(param)
	if raw == nil {
		param = "function_call"
		raw = r.Doc.Raw(param)
	}
	switch {
	case raw == nil:
		return geminiToolChoice{}, nil
	case rawjson.IsText(raw):
		switch rawjson.Unquote(raw) {
		case "none":
			return geminiToolChoice{mode: "NONE"}, nil
		case "auto":
			return geminiToolChoice{mode: "AUTO"}, nil
		case "required":
			return geminiToolChoice{mode: "ANY", any: true}, nil
		}
		return geminiToolChoice{}, cannotGemini(param, "must be none, auto or required, or name a function.")
	case rawjson.Unquote(rawjson.Field(raw, "type")) == "allowed_tools":
		return geminiAllowed(rawjson.Field(raw, "allowed_tools"))
	}
	name := rawjson.Field(raw, "name") // function_call
	if function := rawjson.Field(raw, "function"); function != nil {
		name = rawjson.Field(function, "name")
	}
	if !rawjson.IsText(name) {
		return geminiToolChoice{}, cannotGemini(param, "must be none, auto or required, or name a function.")
	}
	return geminiToolChoice{mode: "ANY", any: true, only: [][]byte{name}}, nil
}

// geminiAllowed reads the tool_choice that narrows the tools down. Without the
// duty to call one, the others are not declared.
func geminiAllowed(allowed []byte) (geminiToolChoice, error) {
	c := geminiToolChoice{mode: "AUTO", only: [][]byte{}}
	if rawjson.Unquote(rawjson.Field(allowed, "mode")) == "required" {
		c.mode, c.any = "ANY", true
	}
	for i, tool := range rawjson.Elements(rawjson.Field(allowed, "tools")) {
		name := rawjson.Field(rawjson.Field(tool, "function"), "name")
		if !rawjson.IsText(name) {
			return c, cannotGemini(fmt.Sprintf("tool_choice.allowed_tools.tools[%d]", i), "must name a function.")
		}
		c.only = append(c.only, name)
	}
	return c, nil
}
