package invoice

import (
	"strings"
	"time"

	"tollgate/internal/invoice/paper"
	"tollgate/internal/topup"
)

// Sheet returns the document for people. It depends only on the row.
func (d IssuedDocument) Sheet() paper.Sheet {
	s := paper.Sheet{Title: d.Kind.Title() + " " + d.Name, Footer: d.Seller.Name + " · " + d.Name, MadeMS: d.IssuedMS,
		Facts:   []paper.SheetFact{{Label: "Number", Value: d.Name}, {Label: "Date", Value: day(d.IssuedMS)}},
		Parties: []paper.SheetParty{{Heading: "From", Lines: d.Seller.lines()}, {Heading: "For", Lines: d.Customer.lines()}}}
	if !d.Live {
		s.Mark = "TEST. The payment provider was in test mode, so no money was paid. This is not an invoice."
	}
	if d.Corrects != "" {
		s.Facts = append(s.Facts, paper.SheetFact{Label: "Corrects", Value: d.Corrects})
	}
	if d.PaidMS != 0 {
		s.Facts = append(s.Facts, paper.SheetFact{Label: "Paid on", Value: day(d.PaidMS)})
	}
	if payment := strings.TrimPrefix(d.PaidBy+", "+d.Payment, ", "); payment != "" {
		s.Facts = append(s.Facts, paper.SheetFact{Label: "Payment", Value: payment})
	}
	tax, rate := d.TaxName, d.TaxRate
	if rate != "" {
		tax += " " + rate
	}
	credit := d.Credit.String() + " USD"
	s.Table = paper.SheetTable{Columns: []paper.SheetColumn{{Title: "Description", Share: 5}, {Title: "Credit", Right: true, Share: 2.4},
		{Title: "Net", Right: true, Share: 2}, {Title: "Tax", Right: true, Share: 2}, {Title: "Total", Right: true, Share: 2}},
		Rows: [][]string{{d.Line, credit, d.Currency.Text(d.Net), d.Currency.Text(d.Tax), d.Currency.Text(d.Total)}}}
	s.Totals = []paper.SheetFact{{Label: "Net", Value: d.Currency.Text(d.Net)}, {Label: tax, Value: d.Currency.Text(d.Tax)},
		{Label: "Total", Value: d.Currency.Text(d.Total)}}
	if d.TaxNote != "" {
		s.Notes = append(s.Notes, d.TaxNote)
	}
	s.Notes = append(s.Notes, d.settlementNote())
	if d.Note != "" {
		s.Notes = append(s.Notes, d.Note)
	}
	return s
}

// settlementNote says that nothing is due, and how the credit was computed.
func (d IssuedDocument) settlementNote() string {
	note := "Paid. Nothing is due."
	switch {
	case d.Kind == CreditNote:
		note = "The amount goes back to the customer, and the credit was taken back."
	case d.Corrects != "":
		note = "The amount stays paid, and the credit was given again. Nothing is due."
	}
	if d.Currency.Code != "usd" || d.Rate != oneUSD {
		note += " Rate: 1 " + strings.ToUpper(d.Currency.Code) + " = " + d.Rate.String() + " USD."
	}
	return note
}

// oneUSD is the rate of one US dollar.
const oneUSD topup.Rate = 1_000_000_000

// lines returns a party as printed.
func (p Party) lines() []string {
	lines := append([]string{p.Name}, p.Address...)
	if p.Country != "" {
		lines = append(lines, p.Country)
	}
	if p.TaxID != "" {
		lines = append(lines, "Tax id: "+p.TaxID)
	}
	return lines
}

// day returns the UTC day of a time.
func day(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }
