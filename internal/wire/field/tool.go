package field

import (
	"errors"
	"strings"
)

// dateSuffix stands for a date in a tool's type.
const dateSuffix = "_DATE"

// toolWords returns the keywords of lines about tools.
func toolWords() []string {
	return []string{"client-tool", "hosted-tool", "tool-option", "tool-member"}
}

// toolRule is a line about tools.
type toolRule struct {
	word   string   // one of toolWords
	name   string   // a tool's type, or a member's name
	rest   []string // the words after the source
	source string
}

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

// hostedTools holds the lines of all files about hosted tools.
type hostedTools struct {
	names   map[string]string
	options map[string][]string
	words   map[string]string // price names by normalized types and fields
}

// gatherTools collects the lines about hosted tools. A value of an option is free if any file says
// so, because the same member has its own values in each tool.
func gatherTools(files []file) hostedTools {
	out := hostedTools{map[string]string{}, map[string][]string{}, map[string]string{}}
	for _, f := range files {
		for _, rule := range f.fields {
			if rule.Class == Tool {
				out.words[normalize(rule.Name)], out.words[normalize(rule.Tool)] = rule.Tool, rule.Tool
			}
		}
		for _, r := range f.tools {
			switch r.word {
			case "hosted-tool":
				out.names[r.name] = r.rest[0]
				out.words[normalize(r.name)], out.words[normalize(r.rest[0])] = r.rest[0], r.rest[0]
			case "tool-option":
				out.options[r.name] = append(out.options[r.name], r.rest...)
			}
		}
	}
	return out
}

// HostedName returns the catalog's name of a hosted tool by its type without the date, if vendors
// have several types for one tool.
func HostedName(kind string) (name string, ok bool) {
	name, ok = tools.names[kind]
	return name, ok
}

// HostedWord returns the catalog's name of the hosted tool named by word. Case, `_` and `-` are
// ignored.
func HostedWord(word string) (name string, ok bool) {
	name, ok = tools.words[normalize(word)]
	return name, ok
}

// normalize returns the common spelling of all names equal except for case and separators.
func normalize(name string) string { return separators.Replace(fold(name)) }

var separators = strings.NewReplacer("_", "", "-", "")

// ToolOption reports whether a member of a hosted tool changes the tool's price, and returns the
// values without an effect.
func ToolOption(member string) (free []string, ok bool) {
	free, ok = tools.options[member]
	return free, ok
}

// ToolMember reports whether the form documents a member of client tools.
func (t *Table) ToolMember(name []byte) bool { return t.members[string(name)] }

// addTools adds the lines of the form's file about client tools.
func (t *Table) addTools(rules []toolRule) {
	for _, r := range rules {
		switch r.word {
		case "tool-member":
			t.members[r.name] = true
		case "client-tool":
			t.clients[r.name] = strings.Join(r.rest, "")
		}
	}
}

// ClientTool reports whether the client executes tools of a type. date is the date at the end of
// the type, or "". If condition (PATH=VALUE) is not empty, a member of the tool must have the
// value.
func (t *Table) ClientTool(kind, date string) (condition string, ok bool) {
	if date != "" {
		kind = strings.TrimSuffix(kind, date) + dateSuffix
	}
	condition, ok = t.clients[kind]
	return condition, ok
}
