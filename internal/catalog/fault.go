package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is one thing wrong with a document.
type Fault struct {
	// Path names the place: `models[3].price.input`, `document` for the whole,
	// or `line 3, column 5` where the text could not be read at all.
	Path string `json:"path"`
	// Message describes the fault and a valid value.
	Message string `json:"message"`
	// Line and Column point into the text, from 1; 0 when unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// String returns the fault as one line: `models[3].price.input: must not be
// negative`.
func (f Fault) String() string { return f.Path + ": " + f.Message }

// Faults is the error of a rejected document: all its faults in the order of the text. After a
// hundred faults, the last entry has the number of further faults.
type Faults []Fault

// Error lists all faults, one a line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// shown orders faults by their place in the text and cuts a long list, with the number of further
// faults as the last entry.
func (fs Faults) sortAndLimit() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	if more := len(fs) - maxFaultsShown; more > 0 {
		fs = append(fs[:maxFaultsShown:maxFaultsShown], Fault{Path: "document", Message: fmt.Sprintf("has %d more faults", more)})
	}
	return fs
}

// Warning describes a valid but probably unintended setting.
type Warning struct {
	Path    string `json:"path"`
	Message string `json:"message"`
}

// String returns the warning as one line.
func (w Warning) String() string { return w.Path + ": " + w.Message }
