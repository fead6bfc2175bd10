package operatorpages

import (
	"time"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/invoice"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// statementsPath is the path of the statement of all accounts below page.Base.
const statementsPath = "/operator/statements"

// statementsPage shows the statement of all accounts for a month.
type statementsPage struct {
	page.List
	PDF string // address of the file
}

// month returns the month in the page's address, or the current UTC month.
func month(v *page.Visit, nowMS int64) string {
	if text := v.Query("month"); text != "" {
		return text
	}
	return time.UnixMilli(nowMS).UTC().Format(operator.MonthFormat)
}

func statementOf(v *page.Visit) (operator.Statement, error) {
	return page.Read(v, func(tx *store.Tx) (operator.Statement, error) {
		now, err := tx.NowMS()
		if err != nil {
			return operator.Statement{}, err
		}
		return operator.StatementTx(tx, month(v, now))
	})
}

func (c *console) showStatements(v *page.Visit) (page.Responder, error) {
	s, err := statementOf(v)
	if err != nil {
		return nil, err
	}
	name := s.First.Format(operator.MonthFormat)
	content := statementsPage{PDF: page.Base + statementsPath + "/file?month=" + name, List: page.List{
		Title: "Statement of all accounts", Path: statementsPath, CSV: page.Base + statementsPath + "/table?month=" + name,
		Filters: ui.Filters{Action: page.Base + statementsPath, Fields: []ui.FormField{
			{Name: "month", Label: "Month (UTC)", Kind: ui.Choice, Options: show.Select(show.Months(s.MadeMS), name)}}},
		Table: statementTable(s)}}
	if len(s.Rows) == 0 {
		content.Empty = &ui.EmptyState{Title: ui.Sayf("Nothing in %s", ui.Month(s.First)), Text: "No account was credited or charged."}
	}
	return page.FullPage{Name: "statements", Title: content.Title, Main: content}, nil
}

func statementTable(s operator.Statement) ui.DataTable {
	t := ui.DataTable{Caption: ui.Sayf("Statement of %s", ui.Month(s.First)),
		Columns: []ui.Column{{Title: "Account"}, {Title: "Paid", Right: true},
			{Title: "Unpaid", Right: true, Fold: true}, {Title: "Trial", Right: true, Fold: true}, {Title: "Charged", Right: true},
			{Title: "Due", Right: true}, {Title: "Balance", Right: true}}}
	cells := func(account any, r operator.StatementRow) []any {
		return []any{account, ui.Money{Amount: r.Paid}, ui.Money{Amount: r.Unpaid}, ui.Money{Amount: r.Trial}, ui.Money{Amount: r.Charged},
			ui.Money{Amount: r.Due}, ui.Money{Amount: r.Balance}}
	}
	for _, r := range s.Rows {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/operator/accounts/" + r.Account + "?view=money",
			Cells: cells(accountCell(map[string]string{r.Account: r.Name}, r.Account), r)})
	}
	if len(t.Rows) > 0 {
		t.Foot = cells(ui.Words("Total"), s.Total)
	}
	return t
}

// downloadStatement returns the statement as a CSV file, with the exact amounts and the total as the last row.
func (c *console) downloadStatement(v *page.Visit) (page.Responder, error) {
	s, err := statementOf(v)
	t := statementTable(s)
	if t.Foot != nil {
		t.Rows = append(t.Rows, ui.DataRow{Cells: t.Foot})
	}
	return page.CSVFile("statement-"+s.First.Format(operator.MonthFormat), t), err
}

func (c *console) printStatement(v *page.Visit) (page.Responder, error) {
	s, err := statementOf(v)
	if err != nil {
		return nil, err
	}
	raw, err := s.Sheet().PDF()
	return page.PDF("statement-"+s.First.Format(operator.MonthFormat), raw), err
}

// movementsTableTx lists the movements of an account. Credits have buttons to mark them as paid, and links to
// their documents.
func (c *console) movementsTableTx(tx *store.Tx, v *page.Visit, account string, list []movement.Entry) (ui.DataTable, error) {
	papers, err := c.papersTx(tx, account, list)
	t := show.Movements(list, page.Base+"/operator")
	t.Columns = append(t.Columns, ui.Column{Title: "Paid"}, ui.Column{Title: "Change"})
	for i, e := range list {
		var state, change any = "", ""
		if operator.CanMark(e) || e.Paid {
			state = ui.Badge{Tone: ui.Warn, Label: "no"}
			if e.Paid {
				state = ui.Badge{Tone: ui.OK, Label: "yes"}
			}
		}
		if operator.CanMark(e) {
			change = ui.Button{Action: page.Base + "/operator/entries/" + e.ID + "/paid", Label: "Mark as paid", About: show.Reason(e)}
			if e.Paid {
				change = ui.Button{Action: page.Base + "/operator/entries/" + e.ID + "/unpaid", Label: "Mark as unpaid", About: show.Reason(e)}
			}
			if d, isIssued := papers.documents[e.ID]; isIssued {
				change = ui.Link{Href: page.Base + invoicesPath + "/" + d.ID, Text: ui.Data(d.Name)}
			} else if e.Paid && c.Invoices != nil {
				change = ui.Group{change, v.Confirm(papers.confirm(e))}
			}
		}
		t.Rows[i].Cells = append(t.Rows[i].Cells, state, change)
	}
	return t, err
}

// creditPapers has the documents of credits by operators, and the data to issue further documents.
type creditPapers struct {
	documents map[string]invoice.IssuedDocument // by credit
	customer  invoice.Party
	invoices  []ui.Option // the newest invoices, for credit notes
}

// papersTx reads the documents for a list of movements. If there are no invoices or no paid credits, papersTx
// does not read the database.
func (c *console) papersTx(tx *store.Tx, account string, list []movement.Entry) (p creditPapers, err error) {
	if c.Invoices == nil {
		return p, nil
	}
	var ids []string
	takesBack := false
	for _, e := range list {
		if operator.CanMark(e) && e.Paid {
			ids, takesBack = append(ids, e.ID), takesBack || e.Amount < 0
		}
	}
	if len(ids) == 0 {
		return p, nil
	}
	if p.documents, err = invoice.OfCreditsTx(tx, ids); err != nil {
		return p, err
	}
	if p.customer, err = invoice.CustomerTx(tx, account); err != nil || !takesBack {
		return p, err
	}
	invoices, _, err := invoice.ListTx(tx, invoice.DocumentFilter{Account: account, Kind: invoice.Invoice, Limit: page.Rows})
	for _, d := range invoices {
		if d.Topup == "" {
			p.invoices = append(p.invoices, ui.Option{Value: d.Name, Label: ui.Data(d.Name + ", " + d.Currency.Text(d.Total))})
		}
	}
	return p, err
}

// confirm returns the dialog that issues the document of a paid credit.
func (p creditPapers) confirm(e movement.Entry) ui.Confirm {
	d := ui.Confirm{ID: "invoice-" + e.ID, Button: "Issue invoice", Title: ui.Sayf("Issue an invoice over %s?", ui.USD(e.Amount)),
		Action: page.Base + "/operator/entries/" + e.ID + "/invoice",
		Text: []ui.Words{ui.Sayf("The customer on the invoice is %s. The customer enters the address under Billing, Invoices.", p.customer.Name),
			"An invoice never changes, and the credit stays marked as paid."}}
	if e.Amount < 0 {
		d.Button, d.Title = "Issue credit note", ui.Sayf("Issue a credit note over %s?", ui.USD(-e.Amount))
		d.Text = []ui.Words{"A credit note never changes, and the take-back stays marked as paid."}
		d.Fields = []ui.FormField{{Name: "corrects", Label: "Invoice", Kind: ui.Choice, Options: p.invoices, Prefix: e.ID + "-",
			Hint: "The invoice of the credit that was taken back."}}
	}
	return d
}

// issueInvoice issues the document of a paid credit and opens the page of the document.
func (c *console) issueInvoice(v *page.Visit) (page.Responder, error) {
	form := ui.PostForm{Fields: []ui.FormField{{Name: "corrects"}}}
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	d, err := page.Write(v, func(tx *store.Tx) (invoice.IssuedDocument, error) {
		return operator.IssueDocumentTx(tx, show.Actor(v), c.Invoices, v.PathID(), form.Field("corrects").Value)
	})
	return page.Redirect(page.Base + invoicesPath + "/" + d.ID), err
}

// markEntry returns the handler that marks a credit as paid or unpaid.
func (c *console) markEntry(paid bool) func(*page.Visit) (page.Responder, error) {
	return func(v *page.Visit) (page.Responder, error) {
		account, err := page.Write(v, func(tx *store.Tx) (string, error) {
			if _, err := operator.MarkPaidTx(tx, show.Actor(v), v.PathID(), paid); err != nil {
				return "", err
			}
			_, account, err := movement.CreditTx(tx, v.PathID())
			return account, err
		})
		return page.Redirect(page.Base + "/operator/accounts/" + account + "?view=money&done=marked"), err
	}
}
