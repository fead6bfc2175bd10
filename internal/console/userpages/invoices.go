package userpages

import (
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/store"
)

// invoicesPath is the path of the list of documents below page.Base.
const invoicesPath = "/billing/invoices"

// hasInvoicesTx reports whether an account gets invoices, or has invoices from before.
func (c *console) hasInvoicesTx(tx *store.Tx, account string) (bool, error) {
	if c.Invoices == nil || c.Invoices.Terms.On() {
		return c.Invoices != nil, nil
	}
	list, _, err := invoice.ListTx(tx, invoice.DocumentFilter{Account: account, Limit: 1})
	return len(list) > 0, err
}

func (c *console) listInvoices(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Invoices", All: "All invoices", Path: invoicesPath,
		New: &ui.Link{Href: page.Base + invoicesPath + "/details", Text: "Invoice details", Icon: "settings", Button: true}}
	err := v.View(func(tx *store.Tx) error {
		list, more, err := invoice.ListTx(tx, invoice.DocumentFilter{Account: v.Account(), After: v.Query("after"), Limit: page.Rows})
		content.Table = show.Documents(list, invoicesPath)
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(d invoice.IssuedDocument) string { return d.ID }))
		return err
	})
	return content.Page(false, ui.EmptyState{Title: "No invoices yet",
		Text: "Each payment gets an invoice, and each refund a credit note. Enter your name and address before you pay."}).
		WithNotice(v, map[string]ui.Words{"saved": "Your details are saved. They apply to your next invoices."}), err
}

// ownInvoice returns the visitor's document named in the path.
func ownInvoice(v *page.Visit) (invoice.IssuedDocument, error) {
	d, err := page.Read(v, func(tx *store.Tx) (invoice.IssuedDocument, error) { return invoice.GetTx(tx, v.PathID()) })
	if err == nil && d.Account != v.Account() {
		return d, fault.New(fault.NotFound, "There is no document with the id %q. Check the id.", fault.Excerpt(v.PathID()))
	}
	return d, err
}

func (c *console) showInvoice(v *page.Visit) (page.Responder, error) {
	d, err := ownInvoice(v)
	if err != nil {
		return nil, err
	}
	return show.Document(d, invoicesPath), nil
}

func (c *console) downloadInvoice(v *page.Visit) (page.Responder, error) {
	d, err := ownInvoice(v)
	if err != nil {
		return nil, err
	}
	return show.DocumentFile(d)
}

// detailsForm asks for the customer's details on invoices.
func detailsForm(p invoice.Party) ui.PostForm {
	return ui.PostForm{Action: page.Base + invoicesPath + "/details", Submit: "Save", Cancel: page.Base + invoicesPath, Fields: []ui.FormField{
		{Name: "name", Label: "Name", Value: p.Name, Required: true, Hint: "Your company, or your own name."},
		{Name: "address", Label: "Address", Kind: ui.Area, Value: strings.Join(p.Address, "\n"), Hint: "At most 8 lines, without the country."},
		{Name: "country", Label: "Country", Value: p.Country, Hint: "Two letters, such as DE, FR or US."},
		{Name: "tax_id", Label: "Tax id", Value: p.TaxID, Hint: "For example your VAT number. Leave it empty if you have none."},
	}}
}

func (c *console) invoiceDetails(v *page.Visit) (page.Responder, error) {
	p, err := page.Read(v, func(tx *store.Tx) (invoice.Party, error) { return invoice.CustomerTx(tx, v.Account()) })
	return page.FormPage("Invoice details", detailsForm(p)), err
}

func (c *console) saveInvoiceDetails(v *page.Visit) (page.Responder, error) {
	form := detailsForm(invoice.Party{})
	return v.Submit(&form, func() (page.Responder, error) {
		p := invoice.Party{Name: form.Field("name").Value, Country: form.Field("country").Value, TaxID: form.Field("tax_id").Value,
			Address: strings.Split(strings.ReplaceAll(form.Field("address").Value, "\r\n", "\n"), "\n")}
		return v.Done(invoicesPath, "saved", func(tx *store.Tx) error { return invoice.SetCustomerTx(tx, v.Account(), p) })
	}, func() (page.FullPage, error) { return page.FormPage("Invoice details", form), nil })
}
