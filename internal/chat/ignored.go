package chat

import "strings"

// Bounds of the header that names ignored fields, whose names a client chose.
const (
	maxIgnoredNames = 16
	maxIgnoredName  = 64 // bytes
)

// namesOfFields lists fields for a header and the request log: no more than
// maxIgnoredNames, and `...` for the rest.
func namesOfFields(fields []string) string {
	var out strings.Builder
	for i, name := range fields {
		if i > 0 {
			out.WriteString(", ")
		}
		if i == maxIgnoredNames {
			out.WriteString("...")
			break
		}
		out.WriteString(nameOfField(name))
	}
	return out.String()
}

// nameOfField returns a field's name for a header or a log, cut to maxIgnoredName
// bytes and with `?` for what cannot stand there.
func nameOfField(name string) string {
	return strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f && c != ',' {
			return c
		}
		return '?'
	}, name[:min(len(name), maxIgnoredName)])
}
