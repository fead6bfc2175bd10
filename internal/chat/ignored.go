package chat

import (
	"slices"

	"tollgate/internal/line"
)

// omittedFields returns the parts of a request withheld from a line: fields, and flags of the client's
// headers if the line gets the headers.
func (x *chatRequest) omittedFields(on *line.Candidate, fields []string) []string {
	if on.Form != x.Form || len(x.DroppedFlags) == 0 {
		return fields
	}
	return append(slices.Clone(fields), x.DroppedFlags...)
}
