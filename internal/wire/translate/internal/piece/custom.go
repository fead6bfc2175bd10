package piece

import (
	"tollgate/internal/wire/rawjson"
)

// inputName is the only parameter, a string, of the function that replaces a custom tool on lines
// without custom tools. A custom tool takes free text.
const inputName = "input"

// WrapInput returns the arguments, a JSON string, of the function replacing a custom tool. input is
// a JSON string.
func WrapInput(input []byte) []byte {
	if !rawjson.IsText(input) {
		input = []byte(`""`)
	}
	return rawjson.Quote(`{"` + inputName + `":` + string(input) + `}`)
}

// UnwrapInput is the inverse of WrapInput for the contents of JSON strings. Other arguments are
// returned unchanged.
func UnwrapInput(arguments []byte) []byte {
	text := rawjson.AppendUnquoted(nil, arguments)
	if rawjson.IsValid(text) {
		object := text[rawjson.SkipSpace(text, 0):]
		switch input := rawjson.Field(object, inputName); {
		case rawjson.IsText(input):
			return input[1 : len(input)-1]
		case input != nil:
			return rawjson.Contents(rawjson.Quote(string(input)))
		}
	}
	return arguments
}

// AppendCustomTool appends the function replacing a custom tool. A grammar cannot be enforced, so
// the description states it.
func AppendCustomTool(dst, tool []byte) []byte {
	about := rawjson.Unquote(rawjson.Field(tool, "description"))
	format := rawjson.Field(tool, "format")
	grammar := rawjson.Field(format, "grammar")
	if grammar == nil {
		grammar = format
	}
	if definition := rawjson.Unquote(rawjson.Field(grammar, "definition")); definition != "" {
		if about != "" {
			about += "\n\n"
		}
		about += "The input must follow this " + rawjson.Unquote(rawjson.Field(grammar, "syntax")) + " grammar:\n" + definition
	}
	if about != "" {
		dst = rawjson.AppendMember(dst, "description", rawjson.Quote(about))
	}
	return append(rawjson.AppendMember(dst, "parameters", ""),
		`{"type":"object","properties":{"`+inputName+`":{"type":"string","description":"The input of the tool, as it is."}},`+
			`"required":["`+inputName+`"],"additionalProperties":false}`...)
}
