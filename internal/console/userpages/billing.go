package userpages

import (
	"net/url"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/store"
)

// billingPage is the balance and the movements of an account.
type billingPage struct {
	Figures ui.FigureRow
	Redeem  ui.PostForm
	Filters ui.Filters
	CSV     string // where the same movements are a file
	Table   ui.DataTable
	Pager   ui.Pager
	Empty   *ui.EmptyState
}

func redeemForm() ui.PostForm {
	return ui.PostForm{Action: page.Base + "/billing/redeem", Submit: "Redeem", Fields: []ui.FormField{
		{Name: "code", Label: "Code", Required: true, Hint: "For example 7K2Q9-…. Its value is credited immediately."},
	}}
}

func (c *console) billing(v *page.Visit) (page.Responder, error) {
	return c.billingWith(v, redeemForm())
}

// billingWith shows the page with a form, which may have errors.
func (c *console) billingWith(v *page.Visit, form ui.PostForm) (page.FullPage, error) {
	shown := billingPage{Redeem: form}
	f, chosen := movementsOf(v)
	f.Limit = page.Rows
	shown.CSV = page.AddressOf("/billing/movements", chosen)
	if len(chosen) > 0 {
		shown.Filters.Clear = page.Base + "/billing"
	}
	if err := v.View(func(tx *store.Tx) error {
		a, err := account.GetTx(tx, v.Account())
		if err != nil {
			return err
		}
		shown.Figures = ui.FigureRow{
			{Label: "Balance", Value: ui.Money{Amount: a.Money.Balance}, Note: ui.Text{Text: ui.Credits(a.Money.Balance)}},
			{Label: "On hold", Value: ui.Money{Amount: a.Money.Held}, Note: ui.Text{Text: "for running requests"}},
			{Label: "Available", Value: ui.Money{Amount: a.Money.Balance - a.Money.Held - a.Money.Floor}, Note: ui.Text{Text: overdraftNote(a)}},
		}
		nowMS, err := tx.NowMS()
		if err != nil {
			return err
		}
		shown.Filters.Action, shown.Filters.Fields = page.Base+"/billing", movementFields(chosen, nowMS)
		list, more, err := movement.ListTx(tx, f)
		shown.Table = show.Movements(list, page.Base)
		shown.Pager = v.Pager("/billing", more, page.Last(list, func(e movement.Entry) string { return e.ID }))
		return err
	}); err != nil {
		return page.FullPage{}, err
	}
	switch {
	case len(shown.Table.Rows) > 0 || f.After != "":
	case len(chosen) > 0:
		shown.Empty = page.NoneMatch("/billing", "Clear filters")
	default:
		shown.Empty = &ui.EmptyState{Title: "No money has moved yet",
			Text: "Redeem a code, or ask your operator for credit. Every charge then appears here."}
	}
	return page.FullPage{Name: "billing", Title: "Billing", Main: shown}.WithNotice(v, map[string]string{
		"redeemed": "The code is redeemed: its value is the newest movement below.",
	}), nil
}

// movementsOf reads the filters of the page's address: the kind and the UTC month. Unknown values
// are ignored.
func movementsOf(v *page.Visit) (f movement.Selection, chosen url.Values) {
	f, chosen = movement.Selection{Account: v.Account(), After: v.Query("after")}, url.Values{}
	if kind := movement.Sort(v.Query("kind")); kind == movement.Credits || kind == movement.Charges {
		f.Kind = kind
		chosen.Set("kind", string(kind))
	}
	if first, err := time.Parse(show.MonthForm, v.Query("month")); err == nil && first.Year() >= 1970 {
		f.SinceMS, f.UntilMS = first.UnixMilli(), first.AddDate(0, 1, 0).UnixMilli()
		chosen.Set("month", first.Format(show.MonthForm))
	}
	return f, chosen
}

func movementFields(chosen url.Values, nowMS int64) []ui.FormField {
	return []ui.FormField{
		show.Choice("kind", "Kind", chosen.Get("kind"), []ui.Option{
			{Value: string(movement.Credits), Label: "Credits"}, {Value: string(movement.Charges), Label: "Charges"}}),
		show.Choice("month", "Month (UTC)", chosen.Get("month"), show.Months(nowMS)),
	}
}

func overdraftNote(a account.Account) string {
	if a.Money.Floor == 0 {
		return "for new requests"
	}
	return "for new requests, with " + ui.USD(-a.Money.Floor) + " of overdraft"
}

// downloadMovements gives the movements, newest first, as CSV.
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
