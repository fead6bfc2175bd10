package page

import (
	"tollgate/internal/console/ui"
	"tollgate/internal/invoice/paper"
)

// sheetPage shows a document. The page can be printed.
type sheetPage struct {
	Title   ui.Words
	Mark    *ui.Notice
	Facts   ui.Facts
	Parties []paper.SheetParty
	Table   ui.DataTable
	Totals  ui.Facts
	Notes   []string
	Files   []ui.Link
	Back    ui.Link
}

// SheetPage returns the page of a document, with links to its files and back to a list.
func SheetPage(s paper.Sheet, back ui.Link, files ...ui.Link) FullPage {
	p := sheetPage{Title: ui.Data(s.Title), Facts: sheetFacts(s.Facts), Parties: s.Parties, Table: sheetTable(s.Title, s.Table),
		Totals: sheetFacts(s.Totals), Notes: s.Notes, Files: files, Back: back}
	if s.Mark != "" {
		p.Mark = &ui.Notice{Tone: ui.Warn, Text: ui.Data(s.Mark)}
	}
	return FullPage{Name: "sheet", Title: ui.Data(s.Title), Main: p}
}

func sheetFacts(facts []paper.SheetFact) (all ui.Facts) {
	for _, f := range facts {
		all = append(all, ui.Fact{Name: ui.Data(f.Label), Value: ui.Text{Text: ui.Data(f.Value)}})
	}
	return all
}

func sheetTable(caption string, t paper.SheetTable) ui.DataTable {
	table := ui.DataTable{Caption: ui.Data(caption)}
	for _, c := range t.Columns {
		table.Columns = append(table.Columns, ui.Column{Title: ui.Data(c.Title), Right: c.Right})
	}
	for _, row := range t.Rows {
		cells := make([]any, len(row))
		for i, text := range row {
			cells[i] = ui.Text{Text: ui.Data(text)}
		}
		table.Rows = append(table.Rows, ui.DataRow{Cells: cells})
	}
	return table
}
