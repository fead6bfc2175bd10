package admin

import (
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// partyAnswer is the seller or the customer of a document.
type partyAnswer struct {
	Name    string   `json:"name"`
	Address []string `json:"address"`
	Country string   `json:"country"`
	TaxID   string   `json:"tax_id"`
}

// invoiceAnswer is an invoice or a credit note (operator.md, Operator API). Net, Tax and Total are decimal
// numbers in the currency of the payment.
type invoiceAnswer struct {
	ID       string       `json:"id"`
	Number   string       `json:"number"`
	Kind     string       `json:"kind"`
	Account  string       `json:"account"`
	Topup    *string      `json:"topup"`
	Entry    *string      `json:"entry"`
	Payment  *string      `json:"payment"`
	Corrects *string      `json:"corrects"`
	Test     bool         `json:"test"`
	Currency string       `json:"currency"`
	Net      string       `json:"net"`
	Tax      string       `json:"tax"`
	Total    string       `json:"total"`
	Credit   money.Amount `json:"credit_usd"`
	Rate     money.Amount `json:"rate_usd"`
	Seller   partyAnswer  `json:"seller"`
	Customer partyAnswer  `json:"customer"`
	Created  int64        `json:"created"`
}

func showParty(p invoice.Party) partyAnswer {
	return partyAnswer{Name: p.Name, Address: append([]string{}, p.Address...), Country: p.Country, TaxID: p.TaxID}
}

func showInvoice(d invoice.IssuedDocument) invoiceAnswer {
	a := invoiceAnswer{ID: d.ID, Number: d.Name, Kind: string(d.Kind), Account: d.Account, Topup: nilIfZero(d.Topup),
		Payment: nilIfZero(d.Payment), Corrects: nilIfZero(d.Corrects), Test: !d.Live, Currency: d.Currency.Code,
		Net: d.Currency.Decimal(d.Net), Tax: d.Currency.Decimal(d.Tax), Total: d.Currency.Decimal(d.Total), Credit: d.Credit,
		Rate: money.Amount(d.Rate), Seller: showParty(d.Seller), Customer: showParty(d.Customer), Created: seconds(d.IssuedMS)}
	if d.Topup == "" {
		a.Entry = &d.Cause
	}
	return a
}

// issueInvoice answers POST /entries/{id}/invoice.
func (s *server) issueInvoice(c *call) (any, error) {
	var corrects string
	if _, err := c.decodeBody(textField("corrects", &corrects)); err != nil {
		return nil, err
	}
	if s.Invoices == nil {
		return nil, fault.New(fault.NotFound, "Invoices are off. Set invoice_seller_name and the other details of the seller.")
	}
	return change(s, c, func(tx *store.Tx) (any, error) {
		d, err := operator.IssueDocumentTx(tx, s.actor(c), s.Invoices, c.id, corrects)
		return showInvoice(d), err
	})
}

func (s *server) listInvoices(c *call) (any, error) {
	values, after, limit, err := c.page("account", "kind", "number", "since", "until")
	if err != nil {
		return nil, err
	}
	f := invoice.DocumentFilter{Account: values.Get("account"), Kind: invoice.DocumentKind(values.Get("kind")), Name: values.Get("number"),
		After: after, Limit: limit}
	if f.Kind != "" && f.Kind != invoice.Invoice && f.Kind != invoice.CreditNote {
		return nil, fault.At(fault.InvalidRequest, "kind", "kind must be %s or %s.", invoice.Invoice, invoice.CreditNote)
	}
	if f.SinceMS, f.UntilMS, err = requestlog.Span(values.Get("since"), values.Get("until")); err != nil {
		return nil, err
	}
	return view(s, c, func(tx *store.Tx) (any, error) {
		items, more, err := invoice.ListTx(tx, f)
		return newList(items, more, showInvoice), err
	})
}

func (s *server) getInvoice(c *call) (any, error) {
	return view(s, c, func(tx *store.Tx) (any, error) {
		d, err := invoice.GetTx(tx, c.id)
		return showInvoice(d), err
	})
}

// downloadInvoice returns the PDF file of a document.
func (s *server) downloadInvoice(c *call) (any, error) {
	var d invoice.IssuedDocument
	err := s.DB.View(c.ctx, func(tx *store.Tx) (err error) {
		d, err = invoice.GetTx(tx, c.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := d.Sheet().PDF()
	return text{contentType: "application/pdf", body: raw}, err
}
