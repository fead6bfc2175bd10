package invoice

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// DocumentKind is the kind of a document.
type DocumentKind string

// The kinds of documents.
const (
	// Invoice is the document of a payment. It is also the document of a failed refund or a won dispute,
	// and then corrects the credit note.
	Invoice DocumentKind = "invoice"
	// CreditNote is the document of a refund or dispute. It corrects the invoice of the payment.
	CreditNote DocumentKind = "credit_note"
)

// Title returns the kind for people.
func (k DocumentKind) Title() string {
	if k == CreditNote {
		return "Credit note"
	}
	return "Invoice"
}

// IssuedDocument is an issued document. Its amounts are in the smallest unit of the currency. They are
// negative in credit notes.
type IssuedDocument struct {
	ID       string // invoice_…
	Series   string
	Year     int64
	Number   int64
	Name     string // Series, Year and Number, such as INVOICE-2026-00001
	Kind     DocumentKind
	Account  string
	Topup    string // empty for a credit by an operator
	Reversal string // the refund or dispute; empty for the payment
	Cause    string // PaymentSettlement.Cause, or the id of the credit by an operator
	Corrects string // Name of the corrected document, or empty
	Live     bool   // false if no real money was paid

	Currency        topup.Currency
	Net, Tax, Total int64
	Rate            topup.Rate   // US dollars for one unit of Currency
	Credit          money.Amount // received, or taken back if negative

	IssuedMS int64
	DocumentContent
}

// DocumentContent are the texts of a document.
type DocumentContent struct {
	Seller   Party  `json:"seller"`
	Customer Party  `json:"customer"`
	Line     string `json:"line"` // description of the paid item
	// TaxName and TaxRate describe Tax. TaxRate is empty if the payment provider computed the tax.
	TaxName string `json:"tax_name,omitempty"`
	TaxRate string `json:"tax_rate,omitempty"`
	// TaxNote explains why there is no tax.
	TaxNote string `json:"tax_note,omitempty"`
	Note    string `json:"note,omitempty"` // at the end
	PaidMS  int64  `json:"paid_ms"`
	// PaidBy is the payment provider, and Payment its id of the payment. For a credit by an operator, PaidMS
	// and PaidBy are empty, and Payment is the credit's reference.
	PaidBy  string `json:"paid_by"`
	Payment string `json:"payment"`
}

// nameOf returns the Name of a document.
func nameOf(series string, year, number int64) string {
	return fmt.Sprintf("%s-%d-%05d", series, year, number)
}

// columns are the columns read by scanDocument.
const columns = `id, series, year, number, name, kind, account, topup, reversal, cause, corrects, live, currency, decimals,
	net_minor, tax_minor, total_minor, rate_nano, credit_nano, issued_ms, content, digest`

// byIssue puts the invoice of a payment before its corrections. Ids do not order the documents of one
// millisecond.
const byIssue = ` ORDER BY CASE reversal WHEN '' THEN 0 ELSE 1 END, issued_ms, number`

// storedDocument is a row.
type storedDocument struct {
	IssuedDocument
	content, digest string
}

func scanStored(row store.Row) (s storedDocument, err error) {
	var live int64
	err = row.Scan(&s.ID, &s.Series, &s.Year, &s.Number, &s.Name, &s.Kind, &s.Account, &s.Topup, &s.Reversal, &s.Cause, &s.Corrects,
		&live, &s.Currency.Code, &s.Currency.Decimals, &s.Net, &s.Tax, &s.Total, &s.Rate, &s.Credit, &s.IssuedMS, &s.content, &s.digest)
	s.Live = live != 0
	return s, err
}

func scanDocument(row store.Row) (IssuedDocument, error) {
	s, err := scanStored(row)
	if err != nil {
		return s.IssuedDocument, err
	}
	if err := json.Unmarshal([]byte(s.content), &s.DocumentContent); err != nil {
		return s.IssuedDocument, fmt.Errorf("read the content of %s: %w", s.ID, err)
	}
	return s.IssuedDocument, nil
}

// computeDigest returns the SHA-256 of all columns but the digest, in hexadecimal.
func (s storedDocument) computeDigest() string {
	hash := sha256.New()
	for _, text := range []string{s.ID, s.Series, strconv.FormatInt(s.Year, 10), strconv.FormatInt(s.Number, 10), s.Name, string(s.Kind),
		s.Account, s.Topup, s.Reversal, s.Cause, s.Corrects, strconv.FormatBool(s.Live), s.Currency.Code, strconv.Itoa(s.Currency.Decimals),
		strconv.FormatInt(s.Net, 10), strconv.FormatInt(s.Tax, 10), strconv.FormatInt(s.Total, 10), strconv.FormatInt(int64(s.Rate), 10),
		strconv.FormatInt(int64(s.Credit), 10), strconv.FormatInt(s.IssuedMS, 10), s.content} {
		fmt.Fprintf(hash, "%d:%s", len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// insertTx writes the row of a new document.
func insertTx(tx *store.Tx, d IssuedDocument) error {
	raw, err := json.Marshal(d.DocumentContent)
	if err != nil {
		return fmt.Errorf("encode a document: %w", err)
	}
	s := storedDocument{IssuedDocument: d, content: string(raw)}
	_, err = tx.Exec(`INSERT INTO invoice_document (`+columns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`,
		s.ID, s.Series, s.Year, s.Number, s.Name, string(s.Kind), s.Account, s.Topup, s.Reversal, s.Cause, s.Corrects, store.Bool(s.Live),
		s.Currency.Code, s.Currency.Decimals, s.Net, s.Tax, s.Total, int64(s.Rate), int64(s.Credit), s.IssuedMS, s.content, s.computeDigest())
	if err != nil {
		return fmt.Errorf("insert a document: %w", err)
	}
	return nil
}

// GetTx returns a document by its id. The error for an unknown id is a 404.
func GetTx(tx *store.Tx, id string) (IssuedDocument, error) {
	d, err := scanDocument(tx.QueryRow(`SELECT `+columns+` FROM invoice_document WHERE id = $1`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return d, fault.New(fault.NotFound, "There is no document with the id %q. Check the id.", fault.Excerpt(id))
	}
	if err != nil {
		return d, fmt.Errorf("read a document: %w", err)
	}
	return d, nil
}

// OfTopupTx returns the documents of a top-up: the invoice of its payment, then its corrections.
func OfTopupTx(tx *store.Tx, topup string) ([]IssuedDocument, error) {
	list, err := store.Collect(tx, scanDocument, `SELECT `+columns+` FROM invoice_document WHERE topup = $1`+byIssue, topup)
	if err != nil {
		return nil, fmt.Errorf("read the documents of a top-up: %w", err)
	}
	return list, nil
}

// DocumentFilter selects documents. Empty fields select all.
type DocumentFilter struct {
	Account string
	Kind    DocumentKind
	Name    string
	// SinceMS (inclusive) and UntilMS (exclusive) bound IssuedMS. Zero means no bound.
	SinceMS, UntilMS int64
	After            string // the last id of the page before
	Limit            int
}

// ListTx returns documents, newest first, and reports whether there are more.
func ListTx(tx *store.Tx, f DocumentFilter) ([]IssuedDocument, bool, error) {
	where, args := []string{"1 = 1"}, []any{}
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+" $"+strconv.Itoa(len(args)))
	}
	for _, c := range []struct{ condition, value string }{{"account =", f.Account}, {"kind =", string(f.Kind)}, {"name =", f.Name},
		{"id <", f.After}} {
		if c.value != "" {
			add(c.condition, c.value)
		}
	}
	if f.SinceMS != 0 {
		add("issued_ms >=", f.SinceMS)
	}
	if f.UntilMS != 0 {
		add("issued_ms <", f.UntilMS)
	}
	args = append(args, f.Limit+1)
	list, err := store.Collect(tx, scanDocument, `SELECT `+columns+` FROM invoice_document WHERE `+strings.Join(where, " AND ")+
		` ORDER BY id DESC LIMIT $`+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, false, fmt.Errorf("list documents: %w", err)
	}
	if len(list) > f.Limit {
		return list[:f.Limit], true, nil
	}
	return list, false, nil
}
