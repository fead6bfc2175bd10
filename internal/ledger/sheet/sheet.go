// Package sheet owns the writing of texts into tables for spreadsheets.
//
// Invariant: no spreadsheet evaluates the text of a client or provider.
package sheet

import (
	"strconv"
	"strings"
)

// signs begin a formula, or precede one. Some spreadsheets accept full-width signs, which are typed
// in East Asia.
const signs = "=+-@＝＋－＠\t\r"

// Cell returns text as a CSV cell. It writes a ' before a formula sign at the start of the text. If the
// decimal sign is the comma, spreadsheets separate cells at semicolons and ignore quotes within a cell.
// So the text after a semicolon, a tab or a line end counts as a start too. Numbers are unchanged.
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
