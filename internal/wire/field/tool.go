package field

import (
	"errors"
	"strings"
)

// dated stands in a tool's type for a date.
const dated = "_DATE"

// toolWords returns the words that begin lines about tools.
func toolWords() []string {
	return []string{"client-tool", "hosted-tool", "tool-option", "tool-member"}
}

// toolRule is what a file says of tools: the words of a line, and its source.
type toolRule struct {
	word   string   // of toolWords
	name   string   // a tool's type, or a member's name
	rest   []string // what follows the source
	source string
}

// parseTool reads a line about tools.
func parseTool(words []string, sources map[string]string) (toolRule, error) {
	if len(words) < 3 {
		return toolRule{}, errors.New("a tool needs a name and a source")
	}
	r := toolRule{word: words[0], name: words[1], rest: words[3:], source: sources[words[2]]}
	known := false
	switch r.word {
	case "client-tool":
		known = len(r.rest) == 0 || len(r.rest) == 1 && strings.Contains(r.rest[0], "=")
	case "hosted-tool":
		known = len(r.rest) == 1
	case "tool-option":
		known = true
	case "tool-member":
		known = len(r.rest) == 0
	}
	if !known || r.source == "" {
		return toolRule{}, errors.New("the line about a tool cannot be read")
	}
	return r, nil
}

// hostedTools is what all files together say of hosted tools.
type hostedTools struct {
	names   map[string]string
	options map[string][]string
	words   map[string]string // price names by the loose spelling of types and fields
}

// gatherTools collects the lines about hosted tools. A value of an option is free
// if any file says so, because the same member has its own values in each tool.
func gatherTools(files []file) hostedTools {
	out := hostedTools{map[string]string{}, map[string][]string{}, map[string]string{}}
	for _, f := range files {
		for _, one := range f.fields {
			if one.Class == Tool {
				out.words[loose(one.Name)], out.words[loose(one.Tool)] = one.Tool, one.Tool
			}
		}
		for _, r := range f.tools {
			switch r.word {
			case "hosted-tool":
				out.names[r.name] = r.rest[0]
				out.words[loose(r.name)], out.words[loose(r.rest[0])] = r.rest[0], r.rest[0]
			case "tool-option":
				out.options[r.name] = append(out.options[r.name], r.rest...)
			}
		}
	}
	return out
}

// HostedName returns the name by which the catalog prices hosted tools of a type
// without its date, if vendors have several types for one tool.
func HostedName(kind string) (name string, ok bool) {
	name, ok = tools.names[kind]
	return name, ok
}

// HostedWord returns the name by which the catalog prices the hosted tool that a
// word names. Case, `_` and `-` do not count.
func HostedWord(word string) (name string, ok bool) {
	name, ok = tools.words[loose(word)]
	return name, ok
}

// loose returns the common spelling of all names that differ only in case and in separators.
func loose(name string) string { return separators.Replace(fold(name)) }

// separators removes the separators of names.
var separators = strings.NewReplacer("_", "", "-", "")

// ToolOption reports whether a member of a hosted tool changes the tool's price,
// and returns the values that do not.
func ToolOption(member string) (free []string, ok bool) {
	free, ok = tools.options[member]
	return free, ok
}

// ToolMember reports whether the reference of the form documents a member of the
// tools that the client executes.
func (t *Table) ToolMember(name []byte) bool { return t.members[string(name)] }

// toolMembers returns the members of the tools that the client of a form executes.
func toolMembers(form string) map[string]bool {
	out := map[string]bool{}
	for _, r := range toolRules(form, "tool-member") {
		out[r.name] = true
	}
	return out
}

// clientTools returns the tools that the client of a form executes.
func clientTools(form string) map[string]string {
	out := map[string]string{}
	for _, r := range toolRules(form, "client-tool") {
		out[r.name] = strings.Join(r.rest, "")
	}
	return out
}

// toolRules returns the lines of a form's file that begin with word.
func toolRules(form, word string) (rules []toolRule) {
	for _, f := range ofForms {
		for _, r := range f.tools {
			if f.name == form && r.word == word {
				rules = append(rules, r)
			}
		}
	}
	return rules
}

// ClientTool reports whether the client executes tools of a type. date is the date
// at the end of the type, or "". If condition is not empty, a member of the tool
// must have a value: PATH=VALUE.
func (t *Table) ClientTool(kind, date string) (condition string, ok bool) {
	if date != "" {
		kind = strings.TrimSuffix(kind, date) + dated
	}
	condition, ok = t.clients[kind]
	return condition, ok
}
