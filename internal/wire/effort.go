package wire

import (
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// Efforts returns the words of all forms for reasoning effort, the least first.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// NearestEffort returns the supported effort nearest to effort; of two equally near ones, the
// larger. It returns effort itself if supported is empty, and false if effort is not one of
// Efforts.
func NearestEffort(effort string, supported []string) (string, bool) {
	if len(supported) == 0 {
		return effort, true
	}
	all := Efforts()
	index := slices.Index(all, effort)
	if index < 0 {
		return "", false
	}
	nearest, distance := "", len(all)
	for i, word := range all {
		if d := max(i-index, index-i); d <= distance && slices.Contains(supported, word) {
			nearest, distance = word, d
		}
	}
	return nearest, true
}

// Effort returns the effort to send for the client's effort in a field, both JSON strings. A nil
// effort stays nil. It returns a *fault.Error if the effort is not one of Efforts.
func (e *Edits) Effort(effort []byte, field string) ([]byte, error) {
	if effort == nil || len(e.Efforts) == 0 {
		return effort, nil
	}
	nearest, known := NearestEffort(rawjson.Unquote(effort), e.Efforts)
	if !known {
		return nil, fault.At(fault.InvalidRequest, field, "`{param}` must be one of %s for this model.", strings.Join(e.Efforts, ", "))
	}
	return rawjson.Quote(nearest), nil
}
