package operator

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/invoice/paper"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// StatementRow is an account's row of a statement. Amounts are in US dollars of credit.
type StatementRow struct {
	Account, Name string
	Paid          money.Amount // paid credits of the month, less refunds of payments
	Unpaid        money.Amount // credits of the month that are not marked as paid
	Trial         money.Amount
	Charged       money.Amount
	Due           money.Amount // all credits until the end of the month that are not marked as paid
	Balance       money.Amount // at the end of the month, or now
}

// Statement is the statement of all accounts for a month, in UTC.
type Statement struct {
	First   time.Time // the first day of the month
	Running bool      // the month has not ended
	MadeMS  int64
	Rows    []StatementRow // accounts with an amount other than zero, by name
	Total   StatementRow
}

// maxStatement bounds the accounts of a statement.
const maxStatement = 10_000

// MonthFormat is the layout of a month, such as 2026-05.
const MonthFormat = "2006-01"

// StatementTx returns the statement of all accounts for a month. A charge belongs to the month of its
// request. The error for an invalid or future month is a 404.
func StatementTx(tx *store.Tx, month string) (Statement, error) {
	now, err := tx.NowMS()
	if err != nil {
		return Statement{}, err
	}
	first, err := time.Parse(MonthFormat, month)
	if err != nil || first.Year() < 1970 || first.UnixMilli() > now {
		return Statement{}, fault.New(fault.NotFound, "There is no statement of this month. Name a month like 2026-05.")
	}
	end := first.AddDate(0, 1, 0)
	s := Statement{First: first, Running: end.UnixMilli() > now, MadeMS: now}
	credits, err := movement.TotalsTx(tx, first.UnixMilli(), end.UnixMilli())
	if err != nil {
		return s, err
	}
	charged, err := chargedTx(tx, books.DayOf(first.UnixMilli()), books.DayOf(end.UnixMilli()))
	if err != nil {
		return s, err
	}
	later, err := chargedTx(tx, books.DayOf(end.UnixMilli()), 0)
	if err != nil {
		return s, err
	}
	var ids []string
	for id := range credits {
		ids = append(ids, id)
	}
	for id := range charged {
		if _, ok := credits[id]; !ok {
			ids = append(ids, id)
		}
	}
	names, err := account.AccountNamesTx(tx, ids)
	if err != nil {
		return s, err
	}
	states, err := ledger.AccountsTx(tx, ids)
	if err != nil {
		return s, err
	}
	for _, id := range ids {
		c := credits[id]
		row := StatementRow{Account: id, Name: names[id], Paid: c.Paid, Unpaid: c.Unpaid, Trial: c.Trial, Charged: charged[id], Due: c.Due,
			Balance: states[id].Balance - c.Later + later[id]}
		if row != (StatementRow{Account: id, Name: names[id]}) {
			s.Rows = append(s.Rows, row)
		}
	}
	slices.SortFunc(s.Rows, func(a, b StatementRow) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Account, b.Account))
	})
	for _, r := range s.Rows {
		t := &s.Total
		t.Paid, t.Unpaid, t.Trial, t.Charged = t.Paid+r.Paid, t.Unpaid+r.Unpaid, t.Trial+r.Trial, t.Charged+r.Charged
		t.Due, t.Balance = t.Due+r.Due, t.Balance+r.Balance
	}
	return s, nil
}

// chargedTx returns the charges of each account in a span of days. An until of 0 means no end.
func chargedTx(tx *store.Tx, since, until int64) (map[string]money.Amount, error) {
	rows, err := spending.ReadTx(tx, spending.Query{Since: since, Until: until, By: []spending.By{spending.ByAccount}, Limit: maxStatement})
	if errors.Is(err, spending.ErrTooManyRows) {
		return nil, fault.New(fault.InvalidRequest, "More than %d accounts have charges. Read the statements of the accounts one by one.",
			maxStatement)
	}
	charged := make(map[string]money.Amount, len(rows))
	for _, r := range rows {
		charged[r.Account] = r.Charged
	}
	return charged, err
}

// Sheet returns the statement for people.
func (s Statement) Sheet() paper.Sheet {
	period := s.First.Format(time.DateOnly) + " to " + s.First.AddDate(0, 1, -1).Format(time.DateOnly) + ", UTC"
	if s.Running {
		period += ", so far"
	}
	sheet := paper.Sheet{Title: "Statement of all accounts, " + s.First.Format(MonthFormat), Wide: true, MadeMS: s.MadeMS,
		Footer: "Statement of all accounts, " + s.First.Format(MonthFormat), Facts: []paper.SheetFact{{Label: "Days", Value: period},
			{Label: "Amounts", Value: "US dollars of credit"}},
		Table: paper.SheetTable{Columns: []paper.SheetColumn{{Title: "Account", Share: 4}, {Title: "Paid", Right: true, Share: 2},
			{Title: "Unpaid", Right: true, Share: 2}, {Title: "Trial", Right: true, Share: 2}, {Title: "Charged", Right: true, Share: 2},
			{Title: "Due", Right: true, Share: 2}, {Title: "Balance", Right: true, Share: 2}}},
		Notes: []string{"Due are all credits until the end of the month that are not marked as paid, less what was taken back."}}
	total := s.Total
	total.Name = "Total"
	for _, r := range append(slices.Clone(s.Rows), total) {
		sheet.Table.Rows = append(sheet.Table.Rows, []string{cmp.Or(r.Name, r.Account), r.Paid.String(), r.Unpaid.String(), r.Trial.String(),
			r.Charged.String(), r.Due.String(), r.Balance.String()})
	}
	return sheet
}

// MarkPaidTx marks a credit by an operator as paid or unpaid. The error for an unknown credit is a 404. It
// returns a *fault.Error for payments of top-ups and for trial credits.
func MarkPaidTx(tx *store.Tx, by Actor, id string, paid bool) (movement.Entry, error) {
	e, owner, err := markableTx(tx, id)
	if err != nil || e.Paid == paid {
		return e, err
	}
	documents, err := invoice.OfCreditsTx(tx, []string{id})
	if d, ok := documents[id]; ok {
		return e, fault.At(fault.InvalidRequest, "paid", "The credit has the document %s, so it stays marked as paid. To correct an invoice, "+
			"take the credit back, and issue a credit note for the take-back.", d.Name)
	}
	if err != nil {
		return e, err
	}
	if err := movement.SetPaidTx(tx, id, paid); err != nil {
		return e, err
	}
	was := e.Paid
	e.Paid = paid
	return e, writeLogTx(tx, by, LogRow{Act: EntryChange, Object: id, Account: owner, Before: Details{"paid": was},
		After: Details{"paid": paid}})
}

// markableTx locks and returns a credit that an operator may mark, and its account.
func markableTx(tx *store.Tx, id string) (movement.Entry, string, error) {
	e, owner, err := movement.CreditTx(tx, id)
	switch {
	case errors.Is(err, movement.ErrNoEntry):
		err = fault.New(fault.NotFound, "There is no credit with the id %q. Check the id.", fault.Excerpt(id))
	case err == nil && !CanMark(e):
		err = fault.At(fault.InvalidRequest, "paid", "This movement cannot be marked: its payment is known, or it is a trial credit.")
	}
	return e, owner, err
}

// IssueDocumentTx issues the invoice of a credit by an operator. For a take-back, it issues a credit note
// for the invoice with the number corrects. A second call returns the same document.
func IssueDocumentTx(tx *store.Tx, by Actor, issuer *invoice.Issuer, id, corrects string) (invoice.IssuedDocument, error) {
	e, owner, err := markableTx(tx, id)
	if err != nil {
		return invoice.IssuedDocument{}, err
	}
	d, isNew, err := issuer.IssueCreditTx(tx, owner, e, corrects)
	if err != nil || !isNew {
		return d, err
	}
	return d, writeLogTx(tx, by, LogRow{Act: EntryInvoice, Object: id, Account: owner,
		After: Details{"number": d.Name, "total": d.Currency.Text(d.Total)}})
}

// CanMark reports whether an operator may mark a movement as paid or unpaid.
func CanMark(e movement.Entry) bool {
	return (e.Kind == books.EntryCredit || e.Kind == books.EntryTakeBack) && !topup.IsNote(e.Note)
}
