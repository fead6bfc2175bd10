// Package paper owns the layout of documents for people: the Sheet that the console shows as a page, and
// its PDF file.
//
// Invariants: a sheet always has the same PDF bytes. Texts of people are only printed, never interpreted.
// A character without a glyph is printed as a question mark, and the file says so.
package paper

// Sheet is a document for people. All texts are as printed.
type Sheet struct {
	Title string
	// Mark, if not empty, is a warning in front of everything, for example about test mode.
	Mark    string
	Facts   []SheetFact
	Parties []SheetParty
	Table   SheetTable
	// Totals stand below the table. The last one is the sum.
	Totals []SheetFact
	Notes  []string
	// Footer stands at the end of each page.
	Footer string
	// MadeMS is the time in the PDF's properties.
	MadeMS int64
	// Wide is true for landscape pages.
	Wide bool
}

// SheetFact is a label with its value.
type SheetFact struct{ Label, Value string }

// SheetParty is a heading with lines.
type SheetParty struct {
	Heading string
	Lines   []string
}

// SheetTable is a table. Each row has a cell for each column.
type SheetTable struct {
	Columns []SheetColumn
	Rows    [][]string
}

// SheetColumn is a column. Share is its part of the width, relative to the other columns.
type SheetColumn struct {
	Title string
	Right bool // aligned, as numbers are
	Share float64
}
