package ui

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/ledger/sheet"
)

// DataTable is a list of objects. On a phone, each row is a card, unless the table is narrow. The card of a row
// with a link omits the columns with Fold, because the linked page shows them.
type DataTable struct {
	Caption Words // name of the list
	Columns []Column
	Rows    []DataRow
	Foot    []any // one component per column; may be nil
}

// Column describes a column of a table.
type Column struct {
	Title Words
	Right bool // right-aligned, for numbers
	Fold  bool // omitted on phones in rows with a link
	Exact bool // amounts are shown with all digits
	// FileOnly is true for columns of the CSV file that are not on the page.
	FileOnly bool

	Sort   string // address of the list sorted by this column; may be empty
	Sorted string // ascending or descending if the list is sorted by this column
}

// DataRow is a row of a table. The first cell links to Href.
type DataRow struct {
	Href  string
	Cells []any // one component per column
}

// tableCell is a cell with the properties of its column and row for the template.
type tableCell struct {
	Column
	Cell  any
	Href  string // link of the row, for the first cell only
	First bool
	Folds bool // the cell is omitted on phones
	Blank bool // the cell is empty
}

// Class returns the CSS classes of the cell.
func (p tableCell) Class() string {
	var classes []string
	for class, applies := range map[string]bool{"right": p.Right, "folded": p.Folds, "blank": p.Blank} {
		if applies {
			classes = append(classes, class)
		}
	}
	slices.Sort(classes)
	return strings.Join(classes, " ")
}

// narrowColumns is the number of columns that fit on a phone.
const narrowColumns = 3

// Narrow reports whether the table fits on a phone.
func (t DataTable) Narrow() bool {
	return len(t.Columns) <= narrowColumns && !slices.ContainsFunc(t.Rows, func(r DataRow) bool { return r.Href != "" })
}

// decimals returns the number of decimals for the amounts of a column, or 0 if the column has no amounts.
func (t DataTable) decimals(column int) (n int) {
	decimalsOf := decimals
	if t.Columns[column].Exact {
		decimalsOf = exactDecimals
	}
	for _, row := range append(slices.Clip(t.Rows), DataRow{Cells: t.Foot}) {
		if column < len(row.Cells) {
			if m, ok := row.Cells[column].(Money); ok {
				n = max(n, minDecimals, decimalsOf(m.Amount))
			}
		}
	}
	return n
}

// AlignDecimals returns the table with the same number of decimals for all amounts in a column.
func (t DataTable) AlignDecimals() DataTable {
	columns := make([]int, len(t.Columns))
	for i := range columns {
		columns[i] = t.decimals(i)
	}
	rows := make([]DataRow, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = DataRow{Href: row.Href, Cells: alignDecimals(row.Cells, columns)}
	}
	t.Rows, t.Foot = rows, alignDecimals(t.Foot, columns)
	return t
}

// alignDecimals returns the cells of a row with the decimals of their columns. columns has the decimals by
// column.
func alignDecimals(cells []any, columns []int) []any {
	cells = slices.Clone(cells)
	for i, cell := range cells {
		if m, ok := cell.(Money); ok {
			m.decimals = columns[i]
			cells[i] = m
		}
	}
	return cells
}

// RowCells returns the cells of a row with their columns.
func (t DataTable) RowCells(r DataRow) []tableCell {
	cells := make([]tableCell, len(r.Cells))
	for i, c := range r.Cells {
		cells[i] = tableCell{Column: t.Columns[i], Cell: c, First: i == 0, Folds: t.Columns[i].Fold && r.Href != "",
			Blank: c == "" || c == Words("") || c == nil}
		if i == 0 {
			cells[i].Href = r.Href
		}
	}
	return cells
}

// FootCells returns the cells of the foot with their columns.
func (t DataTable) FootCells() []tableCell { return t.RowCells(DataRow{Cells: t.Foot}) }

// Without returns the table without one of its columns.
func (t DataTable) Without(column int) DataTable {
	t.Columns = slices.Delete(slices.Clone(t.Columns), column, column+1)
	rows := make([]DataRow, len(t.Rows))
	for i, r := range t.Rows {
		rows[i] = DataRow{Href: r.Href, Cells: slices.Delete(slices.Clone(r.Cells), column, column+1)}
	}
	t.Rows = rows
	if t.Foot != nil {
		t.Foot = slices.Delete(slices.Clone(t.Foot), column, column+1)
	}
	return t
}

// OnPage returns the table without the FileOnly columns.
func (t DataTable) OnPage() DataTable {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if t.Columns[i].FileOnly {
			t = t.Without(i)
		}
	}
	return t
}

// CSV writes the table for programs: in English, with exact amounts, with durations in milliseconds, and with
// times in ISO 8601 in UTC. A text gets a leading ' if a spreadsheet would read it as a formula. If withTitles
// is true, CSV first writes the titles of the columns; only the first batch of a long table needs them.
func (t DataTable) CSV(w io.Writer, withTitles bool) error {
	out := csv.NewWriter(w)
	titles := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		titles[i] = c.Title.String()
	}
	if withTitles {
		if err := out.Write(titles); err != nil {
			return err
		}
	}
	for _, r := range t.Rows {
		cells := make([]string, len(r.Cells))
		for i, c := range r.Cells {
			cells[i] = csvValue(c)
		}
		if err := out.Write(cells); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// csvValue returns the CSV value of a component.
func csvValue(component any) string {
	switch c := component.(type) {
	case string:
		return sheet.Cell(c)
	case Words:
		return sheet.Cell(c.String())
	case Text:
		return sheet.Cell(c.Text.String())
	case Ident:
		return sheet.Cell(c.ID)
	case Link:
		return sheet.Cell(c.Text.String())
	case Badge:
		return sheet.Cell(c.Label.String())
	case Money:
		return c.Amount.String()
	case Count:
		return strconv.FormatInt(c.N, 10)
	case Duration:
		return strconv.FormatInt(c.MS, 10)
	case Moment:
		if c.MS == 0 {
			return ""
		}
		return c.ISO()
	}
	return ""
}
