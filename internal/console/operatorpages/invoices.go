package operatorpages

import (
	"archive/zip"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/store"
)

// invoicesPath is the path of the list of documents below page.Base.
const invoicesPath = "/operator/invoices"

// invoicesPage lists documents.
type invoicesPage struct {
	page.List
	ZIP string // address of the PDF files of the selected month; empty if no month is selected
}

// invoiceFilter reads the filters for kind, number and month from the page's address. query has the valid
// filters. Unknown values are ignored.
func invoiceFilter(v *page.Visit) (f invoice.DocumentFilter, query url.Values) {
	f, query = invoice.DocumentFilter{After: v.Query("after"), Name: strings.TrimSpace(v.Query("number"))}, url.Values{}
	if kind := invoice.DocumentKind(v.Query("kind")); kind == invoice.Invoice || kind == invoice.CreditNote {
		f.Kind = kind
		query.Set("kind", string(kind))
	}
	if f.Name != "" {
		query.Set("number", f.Name)
	}
	f.SinceMS, f.UntilMS = show.MonthFilter(v, query)
	return f, query
}

func (c *console) listInvoices(v *page.Visit) (page.Responder, error) {
	f, query := invoiceFilter(v)
	f.Limit = page.Rows
	content := invoicesPage{List: page.List{Title: "Invoices", All: "All invoices", Path: invoicesPath}}
	err := v.View(func(tx *store.Tx) error {
		var ids selectedIDs
		var err error
		if content.Filters, ids, err = (listFilter{Path: content.Path, Names: []string{"account"}}).formTx(tx, v); err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		content.Filters.Fields = append(content.Filters.Fields,
			show.Choice("kind", "Kind", query.Get("kind"), []ui.Option{{Value: string(invoice.Invoice), Label: "Invoices"},
				{Value: string(invoice.CreditNote), Label: "Credit notes"}}),
			show.Choice("month", "Month (UTC)", query.Get("month"), show.Months(now)),
			ui.FormField{Name: "number", Label: "Number", Value: query.Get("number")})
		if len(query) > 0 {
			content.Filters.Clear = page.Base + content.Path
		}
		if content.Filters.Invalid() {
			return nil
		}
		if f.Account = ids.Account; f.Account != "" {
			query.Set("account", f.Account)
		}
		content.CSV = page.AddressOf(content.Path+"/table", query)
		if query.Get("month") != "" {
			content.ZIP = page.AddressOf(content.Path+"/files", query)
		}
		list, more, err := invoice.ListTx(tx, f)
		if err != nil {
			return err
		}
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(d invoice.IssuedDocument) string { return d.ID }))
		content.Table, err = invoicesTableTx(tx, list)
		return err
	})
	content.ReplaceEmpty(content.Filters.Clear != "",
		ui.EmptyState{Title: "No invoices yet", Text: "Each payment gets an invoice, and each refund a credit note. " +
			"For a credit that you gave, use the account's page under Money."})
	return page.FullPage{Name: "invoices", Title: content.Title, Main: content}, err
}

// invoicesTableTx lists documents with their accounts.
func invoicesTableTx(tx *store.Tx, list []invoice.IssuedDocument) (ui.DataTable, error) {
	names, err := accountNamesTx(tx, list, func(d invoice.IssuedDocument) string { return d.Account })
	t := ui.DataTable{Caption: "Invoices", Columns: []ui.Column{{Title: "Issued"}, {Title: "Number"}, {Title: "Account"},
		{Title: "Customer", Fold: true}, {Title: "Country", FileOnly: true}, {Title: "Tax id", FileOnly: true},
		{Title: "Net", Right: true, Fold: true}, {Title: "Tax", Right: true, Fold: true}, {Title: "Total", Right: true},
		{Title: "Currency", Fold: true}, {Title: "Credit", Right: true, Exact: true}, {Title: "Corrects", FileOnly: true},
		{Title: "Payment", FileOnly: true}, {Title: "Top-up", FileOnly: true}}}
	for _, d := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + invoicesPath + "/" + d.ID, Cells: []any{ui.Moment{MS: d.IssuedMS}, d.Name,
			accountCell(names, d.Account), d.Customer.Name, d.Customer.Country, d.Customer.TaxID, ui.Text{Text: ui.Data(d.Currency.Decimal(d.Net))},
			ui.Text{Text: ui.Data(d.Currency.Decimal(d.Tax))}, ui.Text{Text: ui.Data(d.Currency.Decimal(d.Total))}, strings.ToUpper(d.Currency.Code),
			ui.Money{Amount: d.Credit}, d.Corrects, ui.Ident{ID: d.Payment, Cut: true}, ui.Ident{ID: d.Topup, Cut: true}}})
	}
	return t, err
}

// downloadInvoices returns the selected documents as a CSV file.
func (c *console) downloadInvoices(v *page.Visit) (page.Responder, error) {
	f, _ := invoiceFilter(v)
	f.Account = v.Query("account")
	return v.ListFile("invoices", func(tx *store.Tx, after string, limit int) (ui.DataTable, string, error) {
		f.After, f.Limit = after, limit
		list, more, err := invoice.ListTx(tx, f)
		if err != nil {
			return ui.DataTable{}, "", err
		}
		table, err := invoicesTableTx(tx, list)
		next := ""
		if more {
			next = list[len(list)-1].ID
		}
		return table, next, err
	}), nil
}

// maxInvoiceFiles bounds the number of files in a ZIP file.
const maxInvoiceFiles = 2000

// zipInvoices returns the selected documents of a month as a ZIP file of PDF files.
func (c *console) zipInvoices(v *page.Visit) (page.Responder, error) {
	f, query := invoiceFilter(v)
	if f.SinceMS == 0 {
		return nil, fault.New(fault.InvalidRequest, "Choose a month.")
	}
	f.Account, f.After, f.Limit = v.Query("account"), "", maxInvoiceFiles
	var list []invoice.IssuedDocument
	err := v.View(func(tx *store.Tx) error {
		var more bool
		var err error
		if list, more, err = invoice.ListTx(tx, f); err == nil && more {
			return fault.New(fault.InvalidRequest, "This month has more than %d invoices. Choose an account.", maxInvoiceFiles)
		}
		return err
	})
	return page.Attachment{Name: "invoices-" + query.Get("month") + ".zip", Type: "application/zip", Write: func(w io.Writer) error {
		return writeZIP(v, w, list)
	}}, err
}

// writeZIP writes a ZIP file with the PDF files of documents.
func writeZIP(v *page.Visit, w io.Writer, list []invoice.IssuedDocument) error {
	z := zip.NewWriter(w)
	for _, d := range list {
		if err := v.Context().Err(); err != nil {
			return err
		}
		raw, err := d.Sheet().PDF()
		if err != nil {
			return fmt.Errorf("write %s: %w", d.Name, err)
		}
		entry, err := z.CreateHeader(&zip.FileHeader{Name: d.Name + ".pdf", Method: zip.Store, Modified: time.UnixMilli(d.IssuedMS).UTC()})
		if err != nil {
			return err
		}
		if _, err := entry.Write(raw); err != nil {
			return err
		}
	}
	return z.Close()
}

// invoiceOf returns the document named in the path.
func invoiceOf(v *page.Visit) (invoice.IssuedDocument, error) {
	return page.Read(v, func(tx *store.Tx) (invoice.IssuedDocument, error) { return invoice.GetTx(tx, v.PathID()) })
}

func (c *console) showInvoice(v *page.Visit) (page.Responder, error) {
	d, err := invoiceOf(v)
	return show.Document(d, invoicesPath), err
}

func (c *console) downloadInvoice(v *page.Visit) (page.Responder, error) {
	d, err := invoiceOf(v)
	if err != nil {
		return nil, err
	}
	return show.DocumentFile(d)
}
