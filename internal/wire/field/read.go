package field

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A file has one field per line: its name, its class, the key of its source, and the values without
// an effect on the price. The value MEMBER=TEXT stands for an object whose MEMBER is the string TEXT:
// the switch of a hosted tool. A name with a dot is a field inside a top-level one. The class
// `tool:NAME` is class tool, with the catalog's name of the hosted tool. Other lines begin with a
// keyword:
//
//	source KEY URL                         a reference
//	host DOMAIN                            a domain of the vendor
//	# ...                                  a comment
//	client-tool TYPE SOURCE [PATH=VALUE]   the client executes the tool, if its member PATH is VALUE
//	hosted-tool TYPE SOURCE NAME           the catalog prices the hosted tool as NAME
//	tool-member MEMBER SOURCE              client tools may have the member
//	tool-option MEMBER SOURCE [VALUE ...]  other values of the member change the price of a hosted tool
//
// TYPE may end in _DATE.
//
//go:embed data
var files embed.FS

// The tables are read once and never change.
var (
	ofForms   = readFolder("data/forms")
	vendors   = readVendors()
	anyVendor = namesOf(vendors)
	tools     = gatherTools(slices.Concat(ofForms, readFolder("data/vendors")))
	nested    = gatherInner(forms)
	forms     = map[string]*Table{"chat": table("chat"), "responses": table("responses"), "messages": table("messages")}
)

type file struct {
	name   string
	hosts  []string
	fields []*FieldRule
	tools  []toolRule
}

// readFolder reads the files of a folder, sorted by name. It panics on a mistake in a file. The files are
// embedded, so every test run finds a mistake.
func readFolder(folder string) []file {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		panic(err)
	}
	out := make([]file, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			panic(err)
		}
		f, err := parse(strings.TrimSuffix(entry.Name(), ".txt"), string(text))
		if err != nil {
			panic(err)
		}
		out = append(out, f)
	}
	return out
}

func parse(name, text string) (file, error) {
	out := file{name: name}
	sources := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0][0] == '#':
		case words[0] == "source" && len(words) == 3:
			sources[words[1]] = words[2]
		case words[0] == "host" && len(words) == 2:
			out.hosts = append(out.hosts, words[1])
		case slices.Contains(toolWords(), words[0]):
			rule, err := parseTool(words, sources)
			if err != nil {
				return out, fmt.Errorf("data: %s, line %d: %w", name, i+1, err)
			}
			out.tools = append(out.tools, rule)
		case len(words) < 3:
			return out, fmt.Errorf("data: %s, line %d has no name, class and source", name, i+1)
		default:
			f := &FieldRule{Name: words[0], Source: sources[words[2]], FreeValues: words[3:], File: name}
			class, tool, _ := strings.Cut(words[1], ":")
			f.Class, f.Tool = classes[class], tool
			switch {
			case f.Class == Unknown:
				return out, fmt.Errorf("data: %s, line %d has the unknown class %s", name, i+1, words[1])
			case (f.Class == Tool) != (tool != ""):
				return out, fmt.Errorf("data: %s, line %d names no tool, or one without the class tool", name, i+1)
			case f.Source == "":
				return out, fmt.Errorf("data: %s, line %d has no known source", name, i+1)
			}
			out.fields = append(out.fields, f)
		}
	}
	return out, nil
}

func readVendors() []*Vendor {
	var out []*Vendor
	for _, f := range readFolder("data/vendors") {
		v := &Vendor{Name: f.name, Domains: f.hosts, Fields: f.fields, names: map[string]bool{}}
		for _, field := range f.fields {
			v.names[field.Name] = true
		}
		out = append(out, v)
	}
	return out
}

// namesOf returns the names of all fields of vendors.
func namesOf(vendors []*Vendor) map[string]bool {
	out := map[string]bool{}
	for _, v := range vendors {
		maps.Copy(out, v.names)
	}
	return out
}

// gatherInner returns the names of the fields inside the top-level ones of all forms, by their folded
// spelling.
func gatherInner(forms map[string]*Table) map[string]string {
	out := map[string]string{}
	for _, t := range forms {
		for _, outer := range t.fields {
			for _, f := range outer.Inner {
				name := strings.TrimPrefix(f.Name, outer.Name+".")
				out[fold(name)] = name
			}
		}
	}
	return out
}

// table returns the table of a form. Rules documented by the form come first; every other field
// gets the strictest class of any vendor or other form.
func table(form string) *Table {
	t := &Table{fields: map[string]*FieldRule{}, folded: map[string]string{}, clients: map[string]string{}, members: map[string]bool{}}
	own, inner := map[string]*FieldRule{}, map[string]*FieldRule{}
	add := func(to map[string]*FieldRule, f *FieldRule, documented bool) {
		before := to[f.Name]
		if before != nil && (before.Documented || before.Class >= f.Class) {
			return
		}
		copied := *f
		copied.Documented = documented
		to[f.Name] = &copied
	}
	each := func(fields []*FieldRule, documented bool) {
		for _, f := range fields {
			if strings.Contains(f.Name, ".") {
				add(inner, f, documented)
			} else {
				add(own, f, documented)
			}
		}
	}
	for _, f := range ofForms {
		if f.name == form {
			each(f.fields, true)
			t.addTools(f.tools)
		}
	}
	for _, v := range vendors {
		each(v.Fields, false)
	}
	for _, f := range ofForms {
		if f.name != form {
			each(slices.DeleteFunc(slices.Clone(f.fields), func(f *FieldRule) bool { return f.Class < Option }), false)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inner)) {
		outer, _, _ := strings.Cut(name, ".")
		if own[outer] != nil {
			own[outer].Inner = append(own[outer].Inner, inner[name])
		}
	}
	t.fields = own
	for name := range own {
		t.folded[fold(name)] = name
	}
	return t
}
