package operatorpages

import (
	"crypto/rand"
	"errors"
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// topupsPage lists top-ups. The problems of payments are above the list.
type topupsPage struct {
	page.List
	Problems ui.DataTable
}

// topupPage shows a top-up to the operator.
type topupPage struct {
	State     ui.Badge
	Facts     ui.Facts
	Check     ui.Button
	Reversals ui.DataTable
	Papers    ui.DataTable // invoices and credit notes
	Refund    *ui.PostForm
	ByHand    *ui.Notice // explains refunds that the operator must pay by hand; may be nil
}

// paying returns handle if customers can pay. Otherwise it returns a handler that answers 404.
func (c *console) paying(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(c.Topups != nil, handle)
}

// shownProblems bounds the problems on the page.
const shownProblems = 50

// topupFilter reads the filters for state, payment and month from the page's address. query has the valid
// filters. Unknown values are ignored.
func topupFilter(v *page.Visit) (f topup.ListFilter, query url.Values) {
	f, query = topup.ListFilter{After: v.Query("after"), Payment: v.Query("payment")}, url.Values{}
	for _, state := range topup.States() {
		if v.Query("state") == string(state) {
			f.State = state
			query.Set("state", string(state))
		}
	}
	if f.Payment != "" {
		query.Set("payment", f.Payment)
	}
	f.SinceMS, f.UntilMS = show.MonthFilter(v, query)
	return f, query
}

func (c *console) listTopups(v *page.Visit) (page.Responder, error) {
	f, query := topupFilter(v)
	f.Limit = page.Rows
	content := topupsPage{List: page.List{Title: "Top-ups", All: "All top-ups", Path: "/operator/top-ups"}}
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
		content.Filters.Fields = append(content.Filters.Fields, topupFields(query, now)...)
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
		list, more, err := topup.ListTx(tx, f)
		if err != nil {
			return err
		}
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(t topup.Topup) string { return t.ID }))
		if content.Table, err = topupsTableTx(tx, list); err != nil {
			return err
		}
		content.Table.Columns = content.Table.Columns[:shownColumns]
		for i := range content.Table.Rows {
			content.Table.Rows[i].Cells = content.Table.Rows[i].Cells[:shownColumns]
		}
		problems, _, err := topup.ProblemsTx(tx, "", shownProblems)
		content.Problems = problemsTable(problems)
		return err
	})
	content.ReplaceEmpty(content.Filters.Clear != "",
		ui.EmptyState{Title: "No top-ups yet", Text: "Customers add credit on their page Billing. Each order appears here."})
	return page.FullPage{Name: "topups", Title: content.Title, Main: content}.WithNotice(v, map[string]ui.Words{
		"closed": "The problem is closed.",
	}), err
}

func topupFields(query url.Values, nowMS int64) []ui.FormField {
	var states []ui.Option
	for _, state := range topup.States() {
		states = append(states, ui.Option{Value: string(state), Label: ui.Words(strings.ReplaceAll(string(state), "_", " "))})
	}
	return []ui.FormField{show.Choice("state", "State", query.Get("state"), states),
		show.Choice("month", "Month (UTC)", query.Get("month"), show.Months(nowMS)),
		{Name: "payment", Label: "Payment", Value: query.Get("payment")}}
}

// shownColumns is the number of columns on the page. The CSV file has more columns.
const shownColumns = 7

// topupsTableTx lists top-ups with their accounts, for the page and for the CSV file.
func topupsTableTx(tx *store.Tx, list []topup.Topup) (ui.DataTable, error) {
	names, err := accountNamesTx(tx, list, func(t topup.Topup) string { return t.Account })
	table := ui.DataTable{Caption: "Top-ups", Columns: []ui.Column{{Title: "Ordered"}, {Title: "State"}, {Title: "Account"},
		{Title: "Amount", Right: true}, {Title: "Currency", Fold: true}, {Title: "Credit", Right: true, Exact: true},
		{Title: "Provider", Fold: true}, {Title: "Paid", Right: true, Fold: true}, {Title: "Paid on", Fold: true},
		{Title: "Payment", Fold: true}, {Title: "Top-up", Fold: true}}}
	for _, t := range list {
		table.Rows = append(table.Rows, ui.DataRow{Href: page.Base + "/operator/top-ups/" + t.ID, Cells: []any{ui.Moment{MS: t.CreatedMS},
			show.TopupBadge(t), names[t.Account], ui.Text{Text: ui.Data(t.Currency.Decimal(t.Minor))}, strings.ToUpper(t.Currency.Code),
			ui.Money{Amount: t.Credit}, t.Provider, ui.Text{Text: ui.Data(t.Currency.Decimal(t.Total))}, ui.Moment{MS: t.PaidMS},
			ui.Ident{ID: t.Payment, Cut: true}, ui.Ident{ID: t.ID, Cut: true}}})
	}
	return table, err
}

func problemsTable(problems []topup.Problem) ui.DataTable {
	t := ui.DataTable{Caption: "Problems", Columns: []ui.Column{{Title: "Last seen"}, {Title: "Problem"}, {Title: "Times", Right: true},
		{Title: "Top-up"}, {Title: "At the provider"}, {Title: "Change"}}}
	for _, p := range problems {
		t.Rows = append(t.Rows, ui.DataRow{Cells: []any{ui.Moment{MS: p.LastMS}, ui.Text{Text: show.ProblemText(p)}, ui.Count{N: p.Count},
			ui.Ident{ID: p.Topup, Href: page.Base + "/operator/top-ups/" + p.Topup, Cut: true}, ui.Ident{ID: p.Object},
			ui.Button{Action: page.Base + "/operator/top-ups/problems/" + p.ID + "/close", Label: "Close", About: ui.Data(p.Object)}}})
	}
	return t
}

// downloadTopups returns the selected top-ups as a CSV file.
func (c *console) downloadTopups(v *page.Visit) (page.Responder, error) {
	f, _ := topupFilter(v)
	f.Account = v.Query("account")
	return v.ListFile("top-ups", func(tx *store.Tx, after string, limit int) (ui.DataTable, string, error) {
		f.After, f.Limit = after, limit
		list, more, err := topup.ListTx(tx, f)
		if err != nil {
			return ui.DataTable{}, "", err
		}
		table, err := topupsTableTx(tx, list)
		next := ""
		if more {
			next = list[len(list)-1].ID
		}
		return table, next, err
	}), nil
}

func (c *console) showTopup(v *page.Visit) (page.Responder, error) {
	p, err := c.topupWith(v, nil)
	return p, err
}

// topupWith shows a top-up with a form for a refund, which may have errors. If form is nil, the page has a new
// form.
func (c *console) topupWith(v *page.Visit, form *ui.PostForm) (page.FullPage, error) {
	var t topup.Topup
	var reversals []topup.Reversal
	var papers []invoice.IssuedDocument
	var name string
	err := v.View(func(tx *store.Tx) (err error) {
		if t, err = topup.GetTx(tx, v.PathID()); err != nil {
			return err
		}
		if reversals, err = topup.ReversalsTx(tx, t.ID); err != nil {
			return err
		}
		if papers, err = invoice.OfTopupTx(tx, t.ID); err != nil {
			return err
		}
		owner, err := account.GetTx(tx, t.Account)
		name = owner.Name
		return err
	})
	if err != nil {
		return page.FullPage{}, err
	}
	info := c.Topups.Info(t.Provider)
	content := topupPage{State: show.TopupBadge(t), Reversals: show.TopupReversals(t, reversals),
		Papers: show.Documents(papers, invoicesPath),
		Facts:  append(ui.Facts{{Name: "Account", Value: accountLink(t.Account, name, "")}}, show.TopupFacts(t, info)...),
		Check:  ui.Button{Action: page.Base + "/operator/top-ups/" + t.ID + "/check", Label: ui.Sayf("Ask %s", info.Title)}}
	if left := topup.Left(t, reversals); t.IsPaid() && left > 0 {
		fresh := refundForm(v, t, t.Currency.Decimal(left), rand.Text())
		if content.Refund = form; form == nil {
			content.Refund = &fresh
		}
		content.ByHand = byHand(info)
	}
	return page.FullPage{Name: "topup", Title: "Top-up", Main: content}.WithNotice(v, map[string]ui.Words{
		"checked":    "The payment provider was asked. This is the present state.",
		"unanswered": "The payment provider does not answer at the moment. It is asked again by itself.",
		"refunded":   "The refund is made, and its credit is taken back.",
	}), nil
}

// byHand returns a notice about refunds that the operator must pay by hand, or nil if the provider pays all of
// them.
func byHand(info topup.ProviderInfo) *ui.Notice {
	switch info.Refunds {
	case topup.RefundByHand:
		return &ui.Notice{Tone: ui.Warn, Title: ui.Sayf("Pay the money back at %s first.", info.Title),
			Text: "It has no call for refunds, so this form only takes back the credit."}
	case topup.RefundWhole:
		return &ui.Notice{Tone: ui.Warn, Title: ui.Sayf("%s pays back the whole payment only.", info.Title),
			Text: "For a part, pay the money back on its own pages first. This form then only takes back the credit."}
	}
	return nil
}

func refundForm(v *page.Visit, t topup.Topup, left, once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/top-ups/" + t.ID + "/refund", Submit: "Refund", Danger: true, Fields: []ui.FormField{
		{Name: "amount", Label: "Amount", After: ui.Data(strings.ToUpper(t.Currency.Code)), Numeric: true, Required: true, Value: left,
			Hint: "The credit of the same part is taken back, also below zero."},
		{Name: "reason", Label: "Reason", Required: true, Hint: "For the log. The customer does not see it."},
		secretField(v, "Required to take money back."),
		{Name: "once", Kind: ui.Hidden, Value: once},
	}}
}

// refundTopup takes back the credit of a refund, commits, and then asks the provider to pay the money back.
func (c *console) refundTopup(v *page.Visit) (page.Responder, error) {
	t, err := page.Read(v, func(tx *store.Tx) (topup.Topup, error) { return topup.GetTx(tx, v.PathID()) })
	if err != nil {
		return nil, err
	}
	form := refundForm(v, t, "", "")
	return v.Submit(&form, func() (page.Responder, error) {
		minor, err := t.Currency.Parse(strings.TrimSpace(form.Field("amount").Value))
		if err != nil {
			return nil, fault.At(fault.InvalidRequest, "amount", "The amount %s.", err)
		}
		once, err := v.Once(&form, "refund "+t.ID)
		if err != nil {
			return nil, err
		}
		if err := c.confirmIdentity(v, form.Field("secret").Value, "nothing was refunded"); err != nil {
			return nil, err
		}
		r, err := page.Write(v, func(tx *store.Tx) (r topup.Reversal, err error) {
			_, _, err = page.OnceTx(tx, once, func() (string, error) {
				r, err = operator.RefundTopupTx(tx, show.Actor(v), c.Topups, t.ID, minor, form.Field("reason").Value)
				return r.ID, err
			})
			return r, err
		})
		if err != nil {
			return nil, err
		}
		return c.afterCall(v, t.ID, "refunded", c.Topups.PayBack(v.Context(), r))
	}, func() (page.FullPage, error) { return c.topupWith(v, &form) })
}

// afterCall redirects to a top-up after a call of its provider. err is the error of the call. An error that is
// not a fault means that the provider did not answer.
func (c *console) afterCall(v *page.Visit, id, done string, err error) (page.Responder, error) {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return nil, f
	}
	if err != nil {
		c.Log.Warn("console: a payment provider did not answer", "topup", id, "error", err)
		done = "unanswered"
	}
	return page.To("/operator/top-ups/"+id, done), nil
}

func (c *console) checkTopup(v *page.Visit) (page.Responder, error) {
	return c.afterCall(v, v.PathID(), "checked", c.Topups.Sync(v.Context(), v.PathID(), ""))
}

func (c *console) closeProblem(v *page.Visit) (page.Responder, error) {
	return v.Done("/operator/top-ups", "closed", func(tx *store.Tx) error {
		_, err := operator.CloseProblemTx(tx, show.Actor(v), v.PathID())
		return err
	})
}
