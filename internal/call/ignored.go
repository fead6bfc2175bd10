package call

import (
	"strings"

	"tollgate/internal/catalog"
	"tollgate/internal/fault"
)

// IgnoredHeader is the answer's header with the names of request fields withheld from the line.
const IgnoredHeader = "X-Tollgate-Ignored"

// Bounds of the header of ignored fields, because clients choose the names.
const (
	maxIgnoredNames = 16
	maxIgnoredName  = 64 // bytes
)

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

// CheckUnknown refuses fields not sent to any line of the model, if the operator has configured this.
// extra are the fields not documented for the form of the request.
func (e *Engine) CheckUnknown(s *catalog.Snapshot, m *catalog.Model, extra []string) error {
	if !e.RefuseUnknown || len(extra) == 0 {
		return nil
	}
	name := s.FieldDroppedByAll(m, extra)
	if name == "" {
		return nil
	}
	shown := nameOfField(name)
	return fault.At(fault.InvalidRequest, shown, "`%s` is not a field that this service knows for model %s. Leave it out.", shown, m.ID)
}
