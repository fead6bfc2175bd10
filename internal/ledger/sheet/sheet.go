// Package sheet owns the writing of texts into tables for spreadsheets.
//
// Invariant: no spreadsheet evaluates a stranger's text.
package sheet

import (
	"strconv"
	"strings"
)

// signs begin a formula, or are passed over before one. Some spreadsheets read those of
// full width, as they are typed in East Asia, like the others.
const signs = "=+-@＝＋－＠\t\r"

// Cell returns text as a cell of CSV: a ' precedes a text that a spreadsheet would take for a
// formula. If the comma is the decimal sign, a spreadsheet separates cells at semicolons and
// ignores quotes that begin within a cell, so the text after a semicolon, a tab or a line end may
// be a cell too. Numbers are unchanged.
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
