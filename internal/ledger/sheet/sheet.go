// Package sheet owns how texts go into tables for spreadsheets.
//
// Invariant: no text that a stranger wrote is computed there.
package sheet

import (
	"strconv"
	"strings"
)

// signs begin a formula, or are passed over before one. Some spreadsheets read those of
// full width, as they are typed in East Asia, like the others.
const signs = "=+-@＝＋－＠\t\r"

// Cell is a text as a cell of CSV: what a spreadsheet would take for a formula gets a '
// in front. Where a comma is the decimal sign a spreadsheet parts cells at semicolons, and
// sees no quotes that begin within a cell, so what stands behind a semicolon, a tab or the
// end of a line may be a cell too. A number is what it is.
func Cell(text string) string {
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text
	}
	var guarded strings.Builder
	begins := true
	for _, r := range text {
		if begins && strings.ContainsRune(signs, r) {
			guarded.WriteByte('\'')
		}
		guarded.WriteRune(r)
		begins = strings.ContainsRune(";\t\r\n", r)
	}
	return guarded.String()
}
