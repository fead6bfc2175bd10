package tree

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// JSON returns a tree as JSON with its keys in order. If indent is empty, the JSON has no white
// space.
func JSON(n *Value, indent string) []byte {
	var out bytes.Buffer
	writeFlow(&out, n, ",", ":", jsonText)
	if indent == "" {
		return out.Bytes()
	}
	var pretty bytes.Buffer
	_ = json.Indent(&pretty, out.Bytes(), "", indent) // the text is valid JSON
	pretty.WriteByte('\n')
	return pretty.Bytes()
}

// jsonText returns a text in double quotes, valid in JSON and YAML.
func jsonText(s string) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSuffix(out.String(), "\n")
}

// YAML returns a table of lists as YAML, indented by two spaces, with an empty line between
// entries.
func YAML(root *Value) []byte {
	var out bytes.Buffer
	for i, f := range root.Fields {
		if i > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(yamlText(f.Name))
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

// writeTable writes the keys of a mapping, one per line. If inline is true, the first key is not
// indented.
func writeTable(out *bytes.Buffer, n *Value, indent string, inline bool) {
	for i, f := range n.Fields {
		if i > 0 || !inline {
			out.WriteString(indent)
		}
		out.WriteString(yamlText(f.Name))
		out.WriteByte(':')
		writeValue(out, f.Value, indent)
	}
}

// writeValue writes the value after a key or a dash, and ends the line.
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
		out.WriteString(Flow(n))
		out.WriteByte('\n')
	}
}

// Flow returns a value on one line, as YAML.
func Flow(n *Value) string {
	if n.Kind == QuotedKind {
		return yamlText(n.Text)
	}
	var out bytes.Buffer
	writeFlow(&out, n, ", ", ": ", flowText)
	return out.String()
}

// writeFlow writes a value on one line.
func writeFlow(out *bytes.Buffer, n *Value, comma, colon string, quote func(string) string) {
	switch n.Kind {
	case NullKind:
		out.WriteString("null")
	case PlainKind:
		out.WriteString(n.Text)
	case QuotedKind:
		out.WriteString(quote(n.Text))
	case ListKind:
		out.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				out.WriteString(comma)
			}
			writeFlow(out, item, comma, colon, quote)
		}
		out.WriteByte(']')
	case TableKind:
		out.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				out.WriteString(comma)
			}
			out.WriteString(quote(f.Name))
			out.WriteString(colon)
			writeFlow(out, f.Value, comma, colon, quote)
		}
		out.WriteByte('}')
	}
}

// bareText matches texts that need no quotes in any YAML reader. blockText matches URLs and
// references to variables. They need no quotes outside of brackets. reserved matches words with a
// meaning in some YAML readers.
var (
	bareText  = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_./-]*|[1-9][0-9]*[Kpsmh]([0-9]+[smh])*)$`)
	blockText = regexp.MustCompile(`^(https?://[A-Za-z0-9_./:-]*[A-Za-z0-9_/-]|\$\{[A-Za-z0-9_]+\})$`)
	reserved  = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
)

// flowText returns a text as YAML that is valid inside of brackets.
func flowText(s string) string {
	if bareText.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return jsonText(s)
}

// yamlText returns a text as YAML that is valid outside of brackets.
func yamlText(s string) string {
	if blockText.MatchString(s) {
		return s
	}
	return flowText(s)
}
