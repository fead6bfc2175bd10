package wire

import (
	"slices"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/wire/rawjson"
)

// Efforts are the words of all forms for how much a model thinks, the least first.
func Efforts() []string { return []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"} }

// NearestEffort returns the effort nearest to the one asked for among those that a
// model takes, of two that are as near the larger one; false for a word that is
// none of Efforts. Where nobody knows what the model takes it is what was asked
// for.
func NearestEffort(effort string, taken []string) (string, bool) {
	if len(taken) == 0 {
		return effort, true
	}
	all := Efforts()
	asked := slices.Index(all, effort)
	if asked < 0 {
		return "", false
	}
	nearest, distance := "", len(all)
	for i, word := range all {
		if away := max(i-asked, asked-i); away <= distance && slices.Contains(taken, word) {
			nearest, distance = word, away
		}
	}
	return nearest, true
}

// Effort returns the effort, a JSON string, that the line gets for the one that was
// asked for in a field; nil for none. The error is a *fault.Error: the word is no
// effort.
func (e *Edits) Effort(asked []byte, field string) ([]byte, error) {
	if asked == nil || len(e.Efforts) == 0 {
		return asked, nil
	}
	nearest, known := NearestEffort(rawjson.Unquote(asked), e.Efforts)
	if !known {
		return nil, fault.At(fault.InvalidRequest, field, "`{param}` must be one of %s for this model.", strings.Join(e.Efforts, ", "))
	}
	return rawjson.Quote(nearest), nil
}
