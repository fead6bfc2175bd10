package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is an error in a document.
type Fault struct {
	// Path is the path of the wrong value: `models[3].price.input`. It is `document` for the whole
	// document, and `line 3, column 5` if the text is not valid YAML or JSON.
	Path string `json:"path"`
	// Message describes the fault and a valid value.
	Message string `json:"message"`
	// Line and Column are the position in the text, starting at 1; 0 if unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
}

// String returns the fault as one line: `models[3].price.input: must not be
// negative`.
func (f Fault) String() string { return f.Path + ": " + f.Message }

// Faults is the error of a rejected document: all its faults in the order of the text. After a
// hundred faults, the last entry has the number of further faults.
type Faults []Fault

// Error lists all faults, one per line.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.String()
	}
	return strings.Join(lines, "\n")
}

// sortAndLimit sorts faults by their position, and replaces the last faults of a long list by their
// number.
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
