package chat

import (
	"slices"
	"strings"

	"tollgate/internal/line"
)

// IgnoredHeader is the answer's header with the names of request fields withheld from the line.
const IgnoredHeader = "X-Tollgate-Ignored"

// Bounds of the header of ignored fields, because clients choose the names.
const (
	maxIgnoredNames = 16
	maxIgnoredName  = 64 // bytes
)

// omittedFields returns the parts of a request withheld from a line: fields, and flags of the client's
// headers if the line gets the headers.
func (x *chatRequest) omittedFields(on *line.Candidate, fields []string) []string {
	if on.Form != x.Form || len(x.DroppedFlags) == 0 {
		return fields
	}
	return append(slices.Clone(fields), x.DroppedFlags...)
}

// NamesOfFields lists fields for IgnoredHeader and the request log: at most maxIgnoredNames, and
// `...` for the rest.
func NamesOfFields(fields []string) string {
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

// nameOfField returns a field's name for a header or a log, cut to maxIgnoredName bytes and with
// `?` for forbidden characters.
func nameOfField(name string) string {
	return strings.Map(func(c rune) rune {
		if c > ' ' && c < 0x7f && c != ',' {
			return c
		}
		return '?'
	}, name[:min(len(name), maxIgnoredName)])
}
