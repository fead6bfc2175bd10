package piece

import (
	"tollgate/internal/wire/rawjson"
)

// A custom tool takes free text. Chat lines of most vendors have functions
// only, so one with a single string stands for it: inputName is its argument.
const inputName = "input"

// WrapInput returns the arguments, a JSON string, of the function that stands
// for a custom tool. input is a JSON string.
func WrapInput(input []byte) []byte {
	if !rawjson.IsText(input) {
		input = []byte(`""`)
	}
	return rawjson.Quote(`{"` + inputName + `":` + string(input) + `}`)
}

// UnwrapInput returns the inside of a JSON string with the input of a custom
// tool, given the inside of the one with the arguments. Arguments that are
// something else are the input as they stand.
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

// AppendCustomTool writes the function that stands for a custom tool. A
// grammar cannot be enforced, so the model is told about it.
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
