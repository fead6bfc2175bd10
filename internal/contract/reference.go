package contract

import (
	"slices"
	"strings"
)

// reference is the content of a document's page.
type reference struct {
	Title, About, Source string
	Keys                 []entry
	Chapters             []chapter
	Refusals             []refusal
	Types                []kind
}

// entry is a name and its description.
type entry struct{ Name, About string }

// chapter is a tag with its operations.
type chapter struct {
	Anchor, Name, About string
	Operations          []operation
}

// operation is a method of a path.
type operation struct {
	Anchor, Method, Path, Summary, About string
	Parameters                           []field
	Bodies                               []content
	Example                              string // a command; see OpenAPI.command
	Answers                              []content
	OtherAnswers                         []answer // without a 2xx status
}

// content is a body of one media type. If the schema has a name, Schema is the name, and Anchor leads to the
// schema. Otherwise Fields has the members.
type content struct {
	Status, Type, Schema, Anchor, Example string
	Optional                              bool
	Fields                                []field
}

// answer is a status with its meaning, or with the Anchor of an answer that several operations share.
type answer struct{ Status, About, Anchor string }

// refusal is an answer that several operations share. About explains its error codes. Types are the types of
// these errors.
type refusal struct {
	Anchor, Name, About, Example string
	Types                        []string
}

// kind is a schema with a name.
type kind struct {
	Anchor, Name, About string
	Fields              []field
}

// field is a member of an object or a parameter.
type field struct {
	Name, Type, Anchor, About string
	Required                  bool
}

// reference returns the content of the document's page. source is the path of the document.
func (d *OpenAPI) reference(source string) reference {
	out := reference{Title: d.top.text("info", "title"), About: d.top.text("info", "description"), Source: source}
	for _, scheme := range d.top.table("components", "securitySchemes") {
		definition, _ := scheme.value.(table)
		out.Keys = append(out.Keys, entry{scheme.name, definition.text("description")})
	}
	for _, tag := range d.top.list("tags") {
		t, _ := tag.(table)
		name := t.text("name")
		out.Chapters = append(out.Chapters, chapter{"tag-" + name, name, t.text("description"), d.operations(name)})
	}
	out.Refusals = d.refusals()
	for _, schema := range d.top.table("components", "schemas") {
		s, _ := schema.value.(table)
		out.Types = append(out.Types, kind{anchorOf(schema.name), schema.name, s.text("description"), d.fields(s)})
	}
	return out
}

func anchorOf(schema string) string { return "type-" + schema }

// operations returns the operations of a tag in the order of the document.
func (d *OpenAPI) operations(tag string) (all []operation) {
	for _, path := range d.top.table("paths") {
		methods, _ := path.value.(table)
		for _, m := range methods {
			definition, _ := m.value.(table)
			if slices.Contains(texts(definition.list("tags")), tag) {
				all = append(all, d.operation(path.name, m.name, definition))
			}
		}
	}
	return all
}

func (d *OpenAPI) operation(path, method string, definition table) operation {
	o := operation{Anchor: definition.text("operationId"), Method: strings.ToUpper(method), Path: path, Summary: definition.text("summary"),
		About: definition.text("description"), Example: d.command(path, method, definition)}
	for _, p := range definition.list("parameters") {
		p := d.resolve(p)
		kind, anchor := d.kindOf(p.get("schema"))
		o.Parameters = append(o.Parameters, field{Name: p.text("name"), Type: p.text("in") + ", " + kind, Anchor: anchor,
			About: p.text("description"), Required: p.get("required") == true})
	}
	body := d.resolve(definition.get("requestBody"))
	for _, c := range d.contents(body) {
		c.Optional = body.get("required") != true
		o.Bodies = append(o.Bodies, c)
	}
	for _, r := range definition.table("responses") {
		response := d.resolve(r.value)
		if !strings.HasPrefix(r.name, "2") {
			o.OtherAnswers = append(o.OtherAnswers, otherAnswer(r))
			continue
		}
		for _, c := range d.contents(response) {
			c.Status = r.name
			o.Answers = append(o.Answers, c)
		}
	}
	slices.SortStableFunc(o.OtherAnswers, func(a, b answer) int { return strings.Compare(a.Status, b.Status) })
	return o
}

// otherAnswer returns the answer of a response without a 2xx status.
func otherAnswer(response member) answer {
	definition, _ := response.value.(table)
	if name, shared := strings.CutPrefix(definition.text("$ref"), "#/components/responses/"); shared {
		return answer{Status: response.name, Anchor: "answer-" + name}
	}
	return answer{Status: response.name, About: definition.text("description")}
}

// refusals returns the answers that several operations share.
func (d *OpenAPI) refusals() (all []refusal) {
	for _, r := range d.top.table("components", "responses") {
		definition, _ := r.value.(table)
		all = append(all, refusal{"answer-" + r.name, r.name, definition.text("description"),
			formatExample(definition.get("content", "application/json", "example")), texts(definition.list("x-types"))})
	}
	return all
}

// contents returns the bodies of a request or an answer, one for each media type.
func (d *OpenAPI) contents(definition table) (all []content) {
	for _, m := range definition.table("content") {
		media, _ := m.value.(table)
		c := content{Type: m.name, Example: formatExample(media.get("example"))}
		schema := media.table("schema")
		if c.Schema = strings.TrimPrefix(schema.text("$ref"), schemas); c.Schema != "" {
			c.Anchor = anchorOf(c.Schema)
		} else {
			c.Fields = d.fields(schema)
		}
		all = append(all, c)
	}
	return all
}

// schemas is the prefix of references to named schemas.
const schemas = "#/components/schemas/"

// resolve returns the object v, or the object at the place of the document to which v refers.
func (d *OpenAPI) resolve(v any) table {
	t, _ := v.(table)
	if ref := t.text("$ref"); ref != "" {
		return d.top.table(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return t
}

// fields returns the members of an object's schema.
func (d *OpenAPI) fields(schema table) (all []field) {
	required := texts(schema.list("required"))
	for _, m := range schema.table("properties") {
		kind, anchor := d.kindOf(m.value)
		definition, _ := m.value.(table)
		all = append(all, field{m.name, kind, anchor, strings.TrimSpace(definition.text("description") + bounds(definition)),
			slices.Contains(required, m.name)})
	}
	return all
}

// bounds describes the limits of a schema.
func bounds(schema table) string {
	out := ""
	if values := schema.list("enum"); values != nil {
		var shown []string
		for _, v := range values {
			shown = append(shown, "`"+strings.Trim(string(encode(v)), `"`)+"`")
		}
		out += " One of " + strings.Join(shown, ", ") + "."
	}
	if value := schema.get("const"); value != nil {
		out += " Always `" + strings.Trim(string(encode(value)), `"`) + "`."
	}
	if value := schema.get("minimum"); value != nil && schema.get("maximum") != nil {
		out += " From " + string(encode(value)) + " to " + string(encode(schema.get("maximum"))) + "."
	}
	if value := schema.get("default"); value != nil {
		out += " Default: " + string(encode(value)) + "."
	}
	return out
}

// kindOf describes the type of a schema in words. anchor leads to the schema if it has a name. Of several
// alternatives (anyOf), only the first is described.
func (d *OpenAPI) kindOf(v any) (words, anchor string) {
	schema, _ := v.(table)
	if name, named := strings.CutPrefix(schema.text("$ref"), schemas); named {
		return name, anchorOf(name)
	}
	if item := schema.table("items"); item != nil && schema.get("anyOf") == nil {
		kindName, anchor := d.kindOf(item)
		if kindName == "any" {
			return "list", ""
		}
		return "list of " + kindName, anchor
	}
	if choices := schema.list("anyOf"); choices != nil {
		return d.kindOf(choices[0])
	}
	switch kind := schema.get("type").(type) {
	case string:
		return kind, ""
	case []any:
		return strings.Join(texts(kind), " or "), ""
	}
	return "any", ""
}

// texts returns the strings in a list.
func texts(list []any) (all []string) {
	for _, v := range list {
		if text, ok := v.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
