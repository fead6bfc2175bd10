package tree

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// JSON writes a tree as JSON with its keys in order. An empty indent
// writes it without any white space.
func JSON(n *Value, indent string) []byte {
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

func writeJSON(out *bytes.Buffer, n *Value) {
	switch n.Kind {
	case NullKind:
		out.WriteString("null")
	case PlainKind:
		out.WriteString(n.Text)
	case QuotedKind:
		out.WriteString(jsonText(n.Text))
	case ListKind:
		out.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				out.WriteByte(',')
			}
			writeJSON(out, item)
		}
		out.WriteByte(']')
	case TableKind:
		out.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				out.WriteByte(',')
			}
			out.WriteString(jsonText(f.Name))
			out.WriteByte(':')
			writeJSON(out, f.Value)
		}
		out.WriteByte('}')
	}
}

// jsonText returns a text in double quotes, valid in JSON and YAML.
func jsonText(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

// YAML writes a table of lists as YAML: two spaces a level, an empty line between
// the models and lines.
func YAML(root *Value) []byte {
	var out bytes.Buffer
	for i, f := range root.Fields {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(yamlText(f.Name, false))
		out.WriteByte(':')
		if len(f.Value.Items) == 0 {
			out.WriteString(" []\n")
			continue
		}
		out.WriteByte('\n')
		for j, item := range f.Value.Items {
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
func writeTable(out *bytes.Buffer, n *Value, indent string, inline bool) {
	for i, f := range n.Fields {
		if i > 0 || !inline {
			out.WriteString(indent)
		}
		out.WriteString(yamlText(f.Name, false))
		out.WriteByte(':')
		writeValue(out, f.Value, indent)
	}
}

// writeValue writes the value after a key or a dash, with the end of the line.
func writeValue(out *bytes.Buffer, n *Value, indent string) {
	switch {
	case n.Kind == TableKind && !n.Flow && len(n.Fields) > 0:
		out.WriteByte('\n')
		writeTable(out, n, indent+"  ", false)
	case n.Kind == ListKind && !n.Flow && len(n.Items) > 0:
		out.WriteByte('\n')
		for _, item := range n.Items {
			out.WriteString(indent)
			out.WriteString("  -")
			writeValue(out, item, indent+"    ")
		}
	default:
		out.WriteByte(' ')
		writeFlow(out, n, n.Kind != QuotedKind)
		out.WriteByte('\n')
	}
}

// Flow writes a value on one line, as YAML.
func Flow(n *Value) string {
	var out bytes.Buffer
	writeFlow(&out, n, false)
	return out.String()
}

// writeFlow writes a value on one line.
func writeFlow(out *bytes.Buffer, n *Value, inside bool) {
	switch n.Kind {
	case NullKind:
		out.WriteString("null")
	case PlainKind:
		out.WriteString(n.Text)
	case QuotedKind:
		out.WriteString(yamlText(n.Text, inside))
	case ListKind:
		out.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				out.WriteString(", ")
			}
			writeFlow(out, item, true)
		}
		out.WriteByte(']')
	case TableKind:
		out.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				out.WriteString(", ")
			}
			out.WriteString(yamlText(f.Name, true))
			out.WriteString(": ")
			writeFlow(out, f.Value, true)
		}
		out.WriteByte('}')
	}
}

// bareText matches texts safe without quotes in every YAML reader, blockText further texts safe
// outside of brackets: addresses and references to variables.
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
