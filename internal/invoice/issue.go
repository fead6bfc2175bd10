package invoice

import (
	"fmt"
	"time"

	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/topup"
)

// IssueTx issues the document of a settlement. It joins the transaction of the settlement, and the
// transaction must hold the lock of the top-up. A payment gets an invoice if documents are on. A refund or
// dispute gets a credit note if its payment has an invoice, even if documents are off now.
func (i *Issuer) IssueTx(tx *store.Tx, s topup.PaymentSettlement) error {
	issued, err := OfTopupTx(tx, s.Topup.ID)
	if err != nil {
		return err
	}
	var d IssuedDocument
	switch {
	case s.Minor == 0:
		return nil
	case s.Reversal == "" && i.Terms.On():
		customer, err := CustomerTx(tx, s.Topup.Account)
		if err != nil {
			return err
		}
		d = i.Terms.invoice(s, customer)
	case len(issued) > 0:
		d = i.Terms.correction(s, issued)
	default:
		return nil
	}
	_, err = i.issueTx(tx, d)
	return err
}

// issueTx numbers, inserts and announces a document.
func (i *Issuer) issueTx(tx *store.Tx, d IssuedDocument) (IssuedDocument, error) {
	if err := numberTx(tx, &d); err != nil {
		return d, err
	}
	if err := insertTx(tx, d); err != nil {
		return d, err
	}
	return d, i.mailTx(tx, d)
}

// invoice returns the invoice of a payment, without its number.
func (t SellerTerms) invoice(s topup.PaymentSettlement, customer Party) IssuedDocument {
	x := t.taxOf(s.Topup.Minor, s.Minor, customer)
	d := IssuedDocument{Series: t.InvoiceSeries, Kind: Invoice, Net: s.Minor - x.minor, Tax: x.minor, Total: s.Minor}
	d.DocumentContent = DocumentContent{Seller: t.Seller, Customer: customer, Line: "Prepaid credit for the use of AI models",
		TaxName: t.TaxName, TaxNote: x.note, Note: t.Note}
	if x.rate > 0 {
		d.TaxRate = x.rate.String()
	}
	d.describe(s)
	return d
}

// correction returns the document of a refund or dispute, or of its end, without its number. The parties
// and texts are those of the invoice. The tax is the change of the invoice's tax on the amount still paid,
// so that the taxes of all documents add up exactly.
func (t SellerTerms) correction(s topup.PaymentSettlement, issued []IssuedDocument) IssuedDocument {
	first := issued[0]
	d := IssuedDocument{Series: t.CreditSeries, Kind: CreditNote, Corrects: first.Name, DocumentContent: first.DocumentContent, Total: s.Minor}
	d.Line = "Refund of prepaid credit"
	if s.Minor > 0 {
		d.Series, d.Kind, d.Line = t.InvoiceSeries, Invoice, "Prepaid credit, because a refund or dispute has ended"
		for _, e := range issued { // the newest credit note is the last one
			if e.Reversal == s.Reversal && e.Kind == CreditNote {
				d.Corrects = e.Name
			}
		}
	}
	var paid int64
	for _, e := range issued {
		paid += e.Total
	}
	d.Tax = part(paid+s.Minor, first.Tax, first.Total) - part(paid, first.Tax, first.Total)
	d.Net = d.Total - d.Tax
	d.describe(s)
	return d
}

// describe sets the fields that follow from the top-up.
func (d *IssuedDocument) describe(s topup.PaymentSettlement) {
	t := s.Topup
	d.Account, d.Topup, d.Reversal, d.Cause, d.Live = t.Account, t.ID, s.Reversal, s.Cause, t.Live
	d.Currency, d.Rate, d.Credit = t.Currency, t.Rate, s.Credit
	d.PaidMS, d.PaidBy, d.Payment = t.PaidMS, t.Provider, t.Payment
	if !t.Live {
		d.Series = testSeries + d.Series
	}
}

// numberTx gives a document the next number of its series. Other transactions that need a number of the
// series wait until this one ends; if it is rolled back, the number is free again. The clock may go back, but the
// dates of a series do not.
func numberTx(tx *store.Tx, d *IssuedDocument) error {
	if _, err := tx.Exec(`INSERT INTO invoice_series (name, year, number, issued_ms) VALUES ($1, 0, 0, 0) ON CONFLICT (name) DO NOTHING`,
		d.Series); err != nil {
		return fmt.Errorf("begin a series of documents: %w", err)
	}
	if err := tx.Lock("invoice_series", "name", d.Series); err != nil {
		return err
	}
	var year, number, last int64
	err := tx.QueryRow(`SELECT year, number, issued_ms FROM invoice_series WHERE name = $1`, d.Series).Scan(&year, &number, &last)
	if err != nil {
		return fmt.Errorf("read the newest number: %w", err)
	}
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	d.IssuedMS = max(now, last)
	issued := time.UnixMilli(d.IssuedMS).UTC()
	d.ID, d.Year, d.Number = id.At("invoice_", issued), int64(issued.Year()), 1
	if d.Year == year {
		d.Number = number + 1
	}
	d.Name = nameOf(d.Series, d.Year, d.Number)
	if _, err := tx.Exec(`UPDATE invoice_series SET year = $1, number = $2, issued_ms = $3 WHERE name = $4`,
		d.Year, d.Number, d.IssuedMS, d.Series); err != nil {
		return fmt.Errorf("save the newest number: %w", err)
	}
	return nil
}
