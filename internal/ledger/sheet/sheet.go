// Package sheet owns how texts go into tables for spreadsheets.
//
// Invariant: no text that a stranger wrote is computed there.
package sheet

import (
	"strconv"
	"strings"
)

// Cell is a text as a cell of CSV: one that a spreadsheet would take for a formula gets a
// ' in front. A number is what it is.
func Cell(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	return "'" + text
}
