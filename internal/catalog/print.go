package catalog

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// printJSON writes a tree as JSON with its keys in order. An empty indent
// writes it without any white space.
func printJSON(n *node, indent string) []byte {
	var out bytes.Buffer
	writeJSON(&out, n)
	if indent == "" {
		return out.Bytes()
	}
	var pretty bytes.Buffer
	// The text is JSON of our own making, so it cannot fail.
	_ = json.Indent(&pretty, out.Bytes(), "", indent)
	pretty.WriteByte('\n')
	return pretty.Bytes()
}

func writeJSON(out *bytes.Buffer, n *node) {
	switch n.kind {
	case nullNode:
		out.WriteString("null")
	case plainNode:
		out.WriteString(n.text)
	case quotedNode:
		out.WriteString(jsonText(n.text))
	case listNode:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, item)
		}
		out.WriteByte(']')
	case tableNode:
		out.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(jsonText(f.name))
			out.WriteByte(':')
			writeJSON(out, f.value)
		}
		out.WriteByte('}')
	}
}

// jsonText writes a text in double quotes, which YAML reads alike.
func jsonText(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

// printYAML writes a tree as YAML: two spaces a level, an empty line between
// the models and lines.
func printYAML(root *node) []byte {
	var out bytes.Buffer
	for i, f := range root.fields {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(yamlText(f.name, false))
		out.WriteByte(':')
		if len(f.value.items) == 0 {
			out.WriteString(" []\n")
			continue
		}
		out.WriteByte('\n')
		for j, item := range f.value.items {
			if j > 0 {
				out.WriteByte('\n')
			}
			out.WriteString("  - ")
			writeTable(&out, item, "    ", true)
		}
	}
	return out.Bytes()
}

// writeTable writes the keys of a mapping, one a line. The first stands where
// the cursor is when inline is set.
func writeTable(out *bytes.Buffer, n *node, indent string, inline bool) {
	for i, f := range n.fields {
		if i > 0 || !inline {
			out.WriteString(indent)
		}
		out.WriteString(yamlText(f.name, false))
		out.WriteByte(':')
		writeValue(out, f.value, indent)
	}
}

// writeValue writes what follows a key or a dash, with the line's end.
func writeValue(out *bytes.Buffer, n *node, indent string) {
	switch {
	case n.kind == tableNode && !n.flow && len(n.fields) > 0:
		out.WriteByte('\n')
		writeTable(out, n, indent+"  ", false)
	case n.kind == listNode && !n.flow && len(n.items) > 0:
		out.WriteByte('\n')
		for _, item := range n.items {
			out.WriteString(indent)
			out.WriteString("  -")
			writeValue(out, item, indent+"    ")
		}
	default:
		out.WriteByte(' ')
		writeFlow(out, n, n.kind != quotedNode)
		out.WriteByte('\n')
	}
}

// writeFlow writes a value on one line.
func writeFlow(out *bytes.Buffer, n *node, inside bool) {
	switch n.kind {
	case nullNode:
		out.WriteString("null")
	case plainNode:
		out.WriteString(n.text)
	case quotedNode:
		out.WriteString(yamlText(n.text, inside))
	case listNode:
		out.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				out.WriteString(", ")
			}
			writeFlow(out, item, true)
		}
		out.WriteByte(']')
	case tableNode:
		out.WriteByte('{')
		for i, f := range n.fields {
			if i > 0 {
				out.WriteString(", ")
			}
			out.WriteString(yamlText(f.name, true))
			out.WriteString(": ")
			writeFlow(out, f.value, true)
		}
		out.WriteByte('}')
	}
}

// Texts that every YAML reader takes for text without quotes. Outside of
// brackets also addresses and references to variables.
var (
	bareText  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_./-]*|[1-9][0-9]*[Kpsmh]([0-9]+[smh])*)$`)
	blockText = regexp.MustCompile(`^(https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/-]|\$\{[A-Za-z0-9_]+\})$`)
	reserved  = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

func yamlText(s string, inside bool) string {
	if (bareText.MatchString(s) && !reserved.MatchString(s)) || (!inside && blockText.MatchString(s)) {
		return s
	}
	return jsonText(s)
}
