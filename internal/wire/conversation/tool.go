package conversation

import (
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/wire/internal/schema"
	"tollgate/internal/wire/rawjson"
)

// maxNameLength is the limit on the name of a tool at most providers.
const maxNameLength = 64

// LineName returns the line's name of a tool: letters, digits, `_` and `-`, at most maxNameLength of
// them, and a letter or `_` as the first. It depends only on the name. A changed name ends in a hash.
func LineName(name string) string {
	clean := string(cleanName(name))
	if clean == name && len(name) <= maxNameLength {
		return name
	}
	const ending = 9
	return fmt.Sprintf("%s_%08x", clean[:min(len(clean), maxNameLength-ending)], hashOf(name))
}

// cleanName returns a name in the alphabet that all providers accept. Gemini and Kimi refuse a digit or
// a hyphen as the first character.
func cleanName(name string) []byte {
	clean := []byte(name)
	for i, c := range clean {
		if !isNameByte(c) {
			clean[i] = '_'
		}
	}
	if len(clean) > 0 && (clean[0] == '-' || '0' <= clean[0] && clean[0] <= '9') {
		clean = append([]byte{'_'}, clean...)
	}
	return clean
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// joinName joins a namespace and a name in an alphabet accepted by providers, with an ending.
func joinName(namespace, name, end string) string {
	out := cleanName(namespace + "__" + name)
	return string(out[:min(len(out), maxNameLength-len(end))]) + end
}

// NameOnLine returns the line's name of a tool, even if it is no longer among the tools.
func (r *Request) NameOnLine(name, namespace string) string {
	if t := r.byName[ToolName{Name: name, Namespace: namespace}]; t != nil {
		return t.Line
	}
	if namespace != "" {
		return joinName(namespace, name, "")
	}
	return LineName(name)
}

// NameTools gives each tool its name on the line. Of two tools with the same name the first counts. Tools
// without a namespace get their names first.
func (r *Request) NameTools() {
	if len(r.Tools) == 0 {
		return
	}
	r.byName, r.byLine = make(map[ToolName]*Tool, len(r.Tools)), make(map[string]*Tool, len(r.Tools))
	suffixes := make(map[string]int) // the suffixes tried for each beginning of a name
	for _, t := range r.Tools {
		if t.Namespace == "" {
			r.nameTool(t, LineName(t.Name))
		}
	}
	for _, t := range r.Tools {
		if t.Namespace != "" {
			r.nameTool(t, r.joinedName(t, suffixes))
		}
	}
}

func (r *Request) nameTool(t *Tool, line string) {
	t.Line = line
	if r.byLine[line] == nil {
		r.byLine[line] = t
	}
	if name := (ToolName{Name: t.Name, Namespace: t.Namespace}); r.byName[name] == nil {
		r.byName[name] = t
	}
}

// joinedName returns the line name for a tool of a namespace: the one of an earlier tool with the same name
// and namespace, or else an unused one.
func (r *Request) joinedName(t *Tool, suffixes map[string]int) string {
	const maxSuffix = 10 // longer than the number of any tool that fits into a body
	if named := r.byName[ToolName{Name: t.Name, Namespace: t.Namespace}]; named != nil {
		return named.Line
	}
	line := joinName(t.Namespace, t.Name, "")
	beginning := line[:min(len(line), maxNameLength-maxSuffix)]
	for r.byLine[line] != nil {
		suffixes[beginning]++
		line = joinName(t.Namespace, t.Name, "_"+strconv.Itoa(suffixes[beginning]+1))
	}
	return line
}

// ObjectSchema returns the tool's schema with the type object at its root.
func (t *Tool) ObjectSchema() []byte {
	if t.Schema == nil {
		return []byte(`{"type":"object","properties":{}}`)
	}
	return objectSchema(t.Schema)
}

func objectSchema(schema []byte) []byte {
	for m := range rawjson.Spans(schema) {
		if string(m.Name) == "type" {
			if rawjson.Unquote(schema[m.From:m.To]) == "object" {
				return schema
			}
			return rawjson.Replace(schema, []rawjson.Splice{{From: m.From, To: m.To, Text: []byte(`"object"`)}})
		}
	}
	text := []byte(`"type":"object"`)
	if at := rawjson.SkipSpace(schema, 1); at < len(schema) && schema[at] != '}' {
		text = append(text, ',')
	}
	return rawjson.Replace(schema, []rawjson.Splice{{From: 1, To: 1, Text: text}})
}

// StrictSchema returns the schema for a target, and whether it is strict as requested by the client.
// If the target does not support the schema, it is unchanged and not strict.
func (t *Tool) StrictSchema(original []byte, target *schema.Subset) (parameters []byte, strict bool) {
	if string(t.Strict) == "true" && original != nil {
		if adapted, err := target.For(original, "parameters"); err == nil {
			return adapted, true
		}
	}
	return original, false
}

// A custom tool takes free text. On a line without custom tools, a function with one string replaces
// it, and its calls become calls of the tool again in the answer.

// inputName is the only parameter of such a function.
const inputName = "input"

// WrapInput returns the arguments of the function, a JSON string, for the input of a custom tool.
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
		switch input := rawjson.Field(text[rawjson.SkipSpace(text, 0):], inputName); {
		case rawjson.IsText(input):
			return Contents(input)
		case input != nil:
			return rawjson.Contents(rawjson.Quote(string(input)))
		}
	}
	return Contents(Quoted(arguments))
}

// AsFunction returns the function replacing a custom tool, and any other tool unchanged. A grammar
// cannot be enforced, so the description states it.
func (t *Tool) AsFunction() *Tool {
	if !t.Custom {
		return t
	}
	about := rawjson.Unquote(t.Description)
	grammar := rawjson.Field(t.Grammar, "grammar")
	if grammar == nil {
		grammar = t.Grammar
	}
	if definition := rawjson.Unquote(rawjson.Field(grammar, "definition")); definition != "" {
		about = strings.TrimPrefix(about+"\n\n", "\n\n") + "The input must follow this " +
			rawjson.Unquote(rawjson.Field(grammar, "syntax")) + " grammar:\n" + definition
	}
	f := *t
	f.Custom, f.Strict, f.Description = false, nil, nil
	if about != "" {
		f.Description = rawjson.Quote(about)
	}
	f.Schema = []byte(`{"type":"object","properties":{"` + inputName +
		`":{"type":"string","description":"The input of the tool, as it is."}},` +
		`"required":["` + inputName + `"],"additionalProperties":false}`)
	return &f
}

// FunctionText returns the arguments of a call as a JSON string. The call of a custom tool becomes a
// call of the function replacing it.
func (c *CallPart) FunctionText() []byte {
	if c.Custom {
		return WrapInput(c.Arguments)
	}
	return c.ArgumentText()
}
