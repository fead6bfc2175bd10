package invoice

import (
	"errors"
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// cent is one US cent. Documents of credits by operators are in US dollars.
const cent = money.USD / 100

// IssueCreditTx issues the document of a credit by an operator: an invoice, or for a negative credit a
// credit note for the invoice named corrects. The transaction must hold the lock of the credit. If the
// credit has a document already, IssueCreditTx returns the document, and isNew is false.
func (i *Issuer) IssueCreditTx(
	tx *store.Tx, accountID string, e movement.Entry, corrects string,
) (d IssuedDocument, isNew bool, err error) {
	issued, err := OfCreditsTx(tx, []string{e.ID})
	if d, isIssued := issued[e.ID]; isIssued || err != nil {
		return d, false, err
	}
	s := settlementOf(accountID, e)
	switch {
	case !e.Paid:
		return d, false, fault.At(fault.InvalidRequest, "paid", "The credit is not marked as paid. Mark it first, once the money has moved.")
	case e.Amount%cent != 0:
		return d, false, fault.New(fault.InvalidRequest, "Documents are in whole cents, but this credit is %s US dollars.", e.Amount)
	case e.Amount < 0:
		first, err := correctedTx(tx, accountID, -s.Minor, corrects)
		if err != nil {
			return d, false, err
		}
		d = i.Terms.correction(s, first)
	case !i.Terms.On():
		return d, false, fault.New(fault.InvalidRequest, "Invoices are off. Set invoice_seller_name and the other details of the seller.")
	case corrects != "":
		return d, false, fault.At(fault.InvalidRequest, "corrects", "A credit gets an invoice, which corrects no document. Leave {param} out.")
	default:
		customer, err := CustomerTx(tx, accountID)
		if err != nil {
			return d, false, err
		}
		d = i.Terms.invoice(s, customer)
	}
	d, err = i.issueTx(tx, d)
	return d, true, err
}

// settlementOf returns a credit by an operator as the payment of a top-up without a payment provider.
func settlementOf(accountID string, e movement.Entry) topup.PaymentSettlement {
	minor := int64(e.Amount / cent)
	return topup.PaymentSettlement{Cause: e.ID, Minor: minor, Credit: e.Amount, Topup: topup.Topup{Account: accountID, Live: true,
		Currency: topup.Currency{Code: "usd", Decimals: 2}, Minor: minor, Rate: oneUSD, Payment: e.Reference}}
}

// correctedTx locks the invoice of a credit and returns it, followed by its credit notes. The error is a
// *fault.Error if the account has no such invoice, or if less than minor is left of it.
func correctedTx(tx *store.Tx, accountID string, minor int64, number string) ([]IssuedDocument, error) {
	first, _, err := ListTx(tx, DocumentFilter{Account: accountID, Kind: Invoice, Name: number, Limit: 1})
	if err != nil {
		return nil, err
	}
	if number == "" || len(first) == 0 || first[0].Topup != "" {
		return nil, fault.At(fault.InvalidRequest, "corrects", "Name the invoice that the credit note corrects: one of a credit by an operator "+
			"to this account. Refund a top-up on its own page, which issues the credit note.")
	}
	if err := tx.Lock("invoice_document", "id", first[0].ID); err != nil {
		return nil, err
	}
	list, err := store.Collect(tx, scanDocument, `SELECT `+columns+` FROM invoice_document
		WHERE account = $1 AND topup = '' AND (name = $2 OR corrects = $2)`+byKind, accountID, number)
	if err != nil {
		return nil, fmt.Errorf("read the documents of a credit: %w", err)
	}
	var left int64
	for _, d := range list {
		left += d.Total
	}
	if left < minor {
		return nil, fault.At(fault.InvalidRequest, "corrects", "The rest of %s is %s, which is less than the %s taken back.",
			number, first[0].Currency.Text(left), first[0].Currency.Text(minor))
	}
	return list, nil
}

// byKind puts the invoice of a credit before its credit notes.
const byKind = ` ORDER BY CASE kind WHEN 'invoice' THEN 0 ELSE 1 END, issued_ms, number`

// OfCreditsTx returns the documents of credits by operators, by the ids of the credits.
func OfCreditsTx(tx *store.Tx, entries []string) (map[string]IssuedDocument, error) {
	list, err := store.Collect(tx, scanDocument, `SELECT `+columns+` FROM invoice_document WHERE `+tx.In("cause", 1), store.List(entries))
	if err != nil {
		return nil, fmt.Errorf("read the documents of credits: %w", err)
	}
	documents := make(map[string]IssuedDocument, len(list))
	for _, d := range list {
		documents[d.Cause] = d
	}
	return documents, nil
}

// auditCredits compares documents with their credits by operators, and credit notes with their invoices.
func auditCredits(tx *store.Tx, books *audit.Books, list []storedDocument) error {
	type sums struct {
		first      storedDocument
		tax, total int64
	}
	invoices := map[string]*sums{}
	for _, s := range list {
		if s.Kind == Invoice {
			invoices[s.Name] = &sums{first: s}
		}
	}
	for _, s := range list {
		report := func(what, recorded, computed string) {
			books.Report(audit.Difference{Account: s.Account, Request: s.ID, What: what, Recorded: recorded, Computed: computed})
		}
		e, owner, err := movement.FindCreditTx(tx, s.Cause)
		if err != nil && !errors.Is(err, movement.ErrNoEntry) {
			return err
		}
		if owner != s.Account || !e.Paid || e.Amount != s.Credit || s.Total != int64(e.Amount/cent) {
			report("a document is not that of a paid credit", s.Credit.String(), e.Amount.String())
		}
		name := s.Name
		if s.Kind == CreditNote {
			name = s.Corrects
		}
		if i := invoices[name]; i == nil {
			report("a credit note corrects no invoice of a credit", name, "")
		} else {
			i.tax, i.total = i.tax+s.Tax, i.total+s.Total
		}
	}
	for _, i := range invoices {
		if i.total < 0 || i.tax != part(i.total, i.first.Tax, i.first.Total) {
			books.Report(audit.Difference{Account: i.first.Account, Request: i.first.ID,
				What: "the credit notes of an invoice do not add up", Recorded: i.first.Currency.Text(i.total), Computed: i.first.Currency.Text(0)})
		}
	}
	return nil
}
