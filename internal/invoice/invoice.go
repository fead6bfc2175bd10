// Package invoice owns the documents of payments: invoices, and credit notes for refunds and disputes.
// A payment is a paid top-up, or a credit by an operator marked as paid.
//
// Invariants, even after `kill -9` at any time:
//   - A document is issued in the transaction that books its payment, refund or dispute (Issuer.IssueTx).
//     The document of a credit by an operator is issued later, once (Issuer.IssueCreditTx).
//   - Rows of documents never change. Seller, customer and texts are copied at issue.
//   - The numbers of a series have no gaps within a year, and their dates never decrease.
//   - The documents of a top-up add up to the part of its payment that the customer has not got back.
//   - Amounts come from the top-up and its refunds, never from a browser.
package invoice

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"tollgate/internal/mail"
)

// Party is the seller or the customer of a document.
type Party struct {
	Name    string   `json:"name"`
	Address []string `json:"address,omitempty"` // lines
	Country string   `json:"country,omitempty"` // ISO 3166, two letters
	TaxID   string   `json:"tax_id,omitempty"`
}

// SellerTerms are the operator's settings of documents. Documents are on if the seller has a name.
type SellerTerms struct {
	Seller Party
	Note   string // at the end of each document
	// InvoiceSeries and CreditSeries begin the numbers of invoices and of credit notes.
	InvoiceSeries, CreditSeries string
	// TaxName is the name of the tax, such as VAT.
	TaxName string
	// TaxRate is the tax contained in payments. If the payment provider has added a tax, that tax applies
	// instead.
	TaxRate TaxRate
	// ReverseCharge is the note on invoices to customers with a tax id in other countries. These invoices
	// have no tax. If ReverseCharge is empty, they have the tax too.
	ReverseCharge string
}

// On reports whether payments get invoices.
func (t SellerTerms) On() bool { return t.Seller.Name != "" }

// Issuer issues documents. It is safe for concurrent use.
type Issuer struct {
	// Terms apply to new invoices. Credit notes copy the seller and the customer of their invoice.
	Terms SellerTerms
	// Mails announces documents to the users of their account. If nil, nothing is announced.
	Mails *mail.Mailer
	// PublicURL is the base address of the console.
	PublicURL string
}

// Limits of the texts of a party.
const (
	maxName    = 200 // characters
	maxLine    = 200
	maxLines   = 8
	maxTaxID   = 50
	maxNote    = 1000
	maxSeries  = 20
	maxTaxName = 20
)

// testSeries begins the series of payments in the test mode of their provider.
const testSeries = "TEST-"

// PartyError is an invalid field of a Party.
type PartyError struct {
	Field string // name, address, country or tax_id
	Err   error
}

// Error implements error.
func (e *PartyError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PartyError) Unwrap() error { return e.Err }

// Check returns p without blanks at the ends of its texts. The error is a *PartyError.
func (p Party) Check() (Party, error) {
	var err error
	if p.Name, err = checkText(p.Name, maxName); err != nil {
		return p, &PartyError{"name", err}
	}
	lines := []string{}
	for _, line := range p.Address {
		if line, err = checkText(line, maxLine); err != nil {
			return p, &PartyError{"address", err}
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	if p.Address = lines; len(lines) > maxLines {
		return p, &PartyError{"address", fmt.Errorf("must have at most %d lines", maxLines)}
	}
	p.Country = strings.ToUpper(strings.TrimSpace(p.Country))
	if p.Country != "" && (len(p.Country) != 2 || strings.Trim(p.Country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "") {
		return p, &PartyError{"country", errors.New("must be the two letters of a country (ISO 3166), such as DE")}
	}
	if p.TaxID, err = checkText(p.TaxID, maxTaxID); err != nil {
		return p, &PartyError{"tax_id", err}
	}
	return p, nil
}

// checkText returns a line without blanks at its ends. Control characters are errors, and so are the
// characters that change the direction of the text around them.
func checkText(text string, limit int) (string, error) {
	text = strings.TrimSpace(text)
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isHidden):
		return text, errors.New("must not contain control characters")
	case utf8.RuneCountInString(text) > limit:
		return text, fmt.Errorf("must have at most %d characters", limit)
	}
	return text, nil
}

// isHidden reports whether a character has no glyph and affects other characters.
func isHidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// SellerTermsError is an invalid field of SellerTerms.
type SellerTermsError struct {
	Field string // the setting without its prefix invoice_
	Err   error
}

// Error implements error.
func (e *SellerTermsError) Error() string { return e.Field + " " + e.Err.Error() }

// Unwrap returns the cause.
func (e *SellerTermsError) Unwrap() error { return e.Err }

// Check returns t without blanks at the ends of its texts. The error is a *SellerTermsError.
func (t SellerTerms) Check() (SellerTerms, error) {
	var err error
	if t.Seller, err = t.Seller.Check(); err != nil {
		if p, ok := errors.AsType[*PartyError](err); ok {
			err = &SellerTermsError{"seller_" + p.Field, p.Err}
		}
		return t, err
	}
	if err := t.checkSeller(); err != nil {
		return t, err
	}
	for _, s := range []struct {
		field string
		text  *string
		limit int
	}{{"tax_name", &t.TaxName, maxTaxName}, {"reverse_charge", &t.ReverseCharge, maxNote}, {"note", &t.Note, maxNote}} {
		if *s.text, err = checkText(*s.text, s.limit); err != nil {
			return t, &SellerTermsError{s.field, err}
		}
	}
	if err := checkSeries(t.InvoiceSeries); err != nil {
		return t, &SellerTermsError{"series", err}
	}
	if err := checkSeries(t.CreditSeries); err != nil {
		return t, &SellerTermsError{"credit_series", err}
	}
	if t.InvoiceSeries == t.CreditSeries {
		return t, &SellerTermsError{"credit_series", errors.New("must differ from invoice_series, because each series is numbered on its own")}
	}
	return t, nil
}

// checkSeller checks that the details of the seller are complete.
func (t SellerTerms) checkSeller() error {
	s := t.Seller
	switch {
	case !t.On() && (len(s.Address) > 0 || s.Country != "" || s.TaxID != ""):
		return &SellerTermsError{"seller_name", errors.New("must be set, because another detail of the seller is set")}
	case t.On() && len(s.Address) == 0:
		return &SellerTermsError{"seller_address", errors.New("must be set, because invoice_seller_name is set")}
	case t.On() && s.Country == "":
		return &SellerTermsError{"seller_country", errors.New("must be set, because invoice_seller_name is set")}
	}
	return nil
}

// checkSeries checks the name of a series.
func checkSeries(name string) error {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
	if name == "" || len(name) > maxSeries || strings.Trim(name, allowed) != "" || strings.HasPrefix(name, testSeries) ||
		strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-") {
		return fmt.Errorf("must be at most %d capital letters, digits and hyphens, such as INVOICE, and not begin with %s", maxSeries, testSeries)
	}
	return nil
}
