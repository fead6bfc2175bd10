package show

import (
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/invoice"
)

// Documents lists invoices and credit notes. path is the path of the list below page.Base.
func Documents(list []invoice.IssuedDocument, path string) ui.DataTable {
	t := ui.DataTable{Caption: "Invoices", Columns: []ui.Column{{Title: "Issued"}, {Title: "Number"}, {Title: "Kind", Fold: true},
		{Title: "Corrects", Fold: true}, {Title: "Net", Right: true, Fold: true}, {Title: "Tax", Right: true, Fold: true},
		{Title: "Total", Right: true}, {Title: "PDF"}}}
	for _, d := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + path + "/" + d.ID, Cells: []any{ui.Moment{MS: d.IssuedMS},
			d.Name, ui.Words(d.Kind.Title()),
			d.Corrects, ui.Text{Text: ui.Data(d.Currency.Text(d.Net))}, ui.Text{Text: ui.Data(d.Currency.Text(d.Tax))},
			ui.Text{Text: ui.Data(d.Currency.Text(d.Total))},
			ui.Link{Href: page.Base + path + "/" + d.ID + "/pdf", Text: "Download"}}})
	}
	return t
}

// Document returns the page of a document. path is the path of the list below page.Base.
func Document(d invoice.IssuedDocument, path string) page.FullPage {
	return page.SheetPage(d.Sheet(), ui.Link{Href: page.Base + path, Text: "All invoices"},
		ui.Link{Href: page.Base + path + "/" + d.ID + "/pdf", Text: "PDF", Icon: "download", Button: true})
}

// DocumentFile returns the PDF file of a document.
func DocumentFile(d invoice.IssuedDocument) (page.Responder, error) {
	raw, err := d.Sheet().PDF()
	return page.PDF(d.Name, raw), err
}
