package userpages

import (
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
)

// billingPage shows the balance and the movements of an account.
type billingPage struct {
	Figures  ui.FigureRow
	Redeem   ui.PostForm
	Filters  ui.Filters
	CSV      string // address of the same movements as a file
	Table    ui.DataTable
	Pager    ui.Pager
	Empty    *ui.EmptyState
	Paying   bool       // customers can top up
	Invoices bool       // the customer gets invoices
	Saving   bool       // the customer can save a card for automatic top-ups, or has saved one
	Paused   *ui.Notice // automatic top-ups are paused
}

func redeemForm() ui.PostForm {
	return ui.PostForm{Action: page.Base + "/billing/redeem", Submit: "Redeem", Fields: []ui.FormField{
		{Name: "code", Label: "Redeem code", Required: true, Hint: "For example 7K2Q9-…. Its value is credited immediately."},
	}}
}

func (c *console) billing(v *page.Visit) (page.Responder, error) {
	return c.billingWith(v, redeemForm())
}

// billingWith shows the page with a form, which may have errors.
func (c *console) billingWith(v *page.Visit, form ui.PostForm) (page.FullPage, error) {
	content := billingPage{Redeem: form, Paying: c.Topups != nil}
	f, query := movementsOf(v)
	f.Limit = page.Rows
	content.CSV = page.AddressOf("/billing/movements", query)
	if len(query) > 0 {
		content.Filters.Clear = page.Base + "/billing"
	}
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		content.Figures = ui.FigureRow{
			{Label: "Balance", Value: ui.Money{Amount: a.Money.Balance}, Note: ui.Text{Text: ui.Credits(a.Money.Balance)}},
			{Label: "On hold", Value: ui.Money{Amount: a.Money.Held}, Note: ui.Text{Text: "for running requests"}},
			{Label: "Available", Value: ui.Money{Amount: a.Money.Balance - a.Money.Held - a.Money.Floor}, Note: ui.Text{Text: overdraftNote(a)}},
		}
		if content.Saving, content.Paused, err = c.savingTx(tx, a.ID); err != nil {
			return err
		}
		if content.Invoices, err = c.hasInvoicesTx(tx, a.ID); err != nil {
			return err
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		content.Filters.Action, content.Filters.Fields = page.Base+"/billing", movementFields(query, nowMS)
		list, more, err := movement.ListTx(tx, f)
		content.Table = show.Movements(list, page.Base)
		content.Pager = v.Pager("/billing", more, page.Last(list, func(e movement.Entry) string { return e.ID }))
		return err
	}); err != nil {
		return page.FullPage{}, err
	}
	switch {
	case len(content.Table.Rows) > 0 || f.After != "":
	case len(query) > 0:
		content.Empty = page.NoneMatch("/billing", "Clear filters")
	default:
		content.Empty = &ui.EmptyState{Title: "No money has moved yet",
			Text: "Redeem a code, or ask your operator for credit. Every charge then appears here."}
		if content.Paying {
			content.Empty.Text = "Add credit, or redeem a code. Every charge then appears here."
		}
	}
	return page.FullPage{Name: "billing", Title: "Billing", Main: content}.WithNotice(v, map[string]ui.Words{
		"redeemed": "The code is redeemed: its value is the newest movement below.",
	}), nil
}

// movementsOf reads the filters for kind and UTC month from the page's address. query has the valid filters.
// Unknown values are ignored.
func movementsOf(v *page.Visit) (f movement.Selection, query url.Values) {
	f, query = movement.Selection{Account: v.Account(), After: v.Query("after")}, url.Values{}
	if kind := movement.KindFilter(v.Query("kind")); kind == movement.Credits || kind == movement.Charges {
		f.Kind = kind
		query.Set("kind", string(kind))
	}
	f.SinceMS, f.UntilMS = show.MonthFilter(v, query)
	return f, query
}

func movementFields(query url.Values, nowMS int64) []ui.FormField {
	return []ui.FormField{
		show.Choice("kind", "Kind", query.Get("kind"), []ui.Option{
			{Value: string(movement.Credits), Label: "Credits"}, {Value: string(movement.Charges), Label: "Charges"}}),
		show.Choice("month", "Month (UTC)", query.Get("month"), show.Months(nowMS)),
	}
}

func overdraftNote(a account.Account) ui.Words {
	if a.Money.Floor == 0 {
		return "for new requests"
	}
	return ui.Sayf("for new requests, with %s of overdraft", ui.USD(-a.Money.Floor))
}

// downloadMovements returns the movements, newest first, as a CSV file.
func (c *console) downloadMovements(v *page.Visit) (page.Responder, error) {
	f, _ := movementsOf(v)
	return v.ListFile("movements", func(tx *store.Tx, after string, limit int) (ui.DataTable, string, error) {
		f.After, f.Limit = after, limit
		list, more, err := movement.ListTx(tx, f)
		next := ""
		if more {
			next = list[len(list)-1].ID
		}
		return show.Movements(list, page.Base), next, err
	}), nil
}

func (c *console) redeem(v *page.Visit) (page.Responder, error) {
	form := redeemForm()
	return v.Submit(&form, func() (page.Responder, error) {
		return v.Done("/billing", "redeemed", func(tx *store.Tx) error {
			_, _, err := account.RedeemTx(tx, v.Account(), strings.TrimSpace(form.Field("code").Value))
			return err
		})
	}, func() (page.FullPage, error) { return c.billingWith(v, form) })
}
