package userpages

import (
	"crypto/rand"
	"errors"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/invoice"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// topupPage shows a top-up. For a paid top-up, the page is the receipt.
type topupPage struct {
	Title   ui.Words
	State   ui.Badge
	Whose   string // email of the visitor, for the receipt
	Facts   ui.Facts
	Pay     *ui.Link     // to the provider's page, or nil
	Check   *ui.Button   // asks the provider for the state, or nil
	Notice  *ui.Notice   // the provider is in test mode, or has refused the payment
	Changes ui.DataTable // refunds and disputes
	Papers  ui.DataTable // invoices and credit notes
}

// paying returns handle if customers can pay. Otherwise it returns a handler that answers 404.
func (c *console) paying(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(c.Topups != nil, handle)
}

func (c *console) listTopups(v *page.Visit) (page.Responder, error) {
	content := page.List{Title: "Top-ups", All: "All top-ups", Path: "/billing/top-ups",
		New: page.CreateLink("/billing/top-ups/new", "Add credit")}
	err := v.View(func(tx *store.Tx) error {
		list, more, err := topup.ListTx(tx, topup.ListFilter{Account: v.Account(), After: v.Query("after"), Limit: page.Rows})
		content.Table = ui.DataTable{Caption: content.Title, Columns: []ui.Column{{Title: "Ordered"}, {Title: "State"},
			{Title: "Amount", Right: true}, {Title: "Credit", Right: true, Exact: true}, {Title: "Way to pay", Fold: true}}}
		for _, t := range list {
			content.Table.Rows = append(content.Table.Rows, ui.DataRow{Href: page.Base + "/billing/top-ups/" + t.ID, Cells: []any{
				ui.Moment{MS: t.CreatedMS}, show.TopupBadge(t), ui.Text{Text: ui.Data(t.Currency.Text(t.Minor))}, ui.Money{Amount: t.Credit},
				show.WayToPay(t, c.Topups.Info(t.Provider))}})
		}
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(t topup.Topup) string { return t.ID }))
		return err
	})
	create := content.New
	if len(content.Table.Rows) == 0 {
		content.New = nil
	}
	return content.Page(false, ui.EmptyState{Title: "No top-ups yet", Link: create,
		Text: "You pay on the payment provider's page, and the credit arrives within seconds."}), err
}

// otherAmount is the value of the option to type an amount.
const otherAmount = "other"

// topupForm asks for an amount and a way to pay. save is the first state of the box to save the card.
func (c *console) topupForm(once string, save bool) (ui.PostForm, error) {
	terms := c.Topups.Terms
	form := ui.PostForm{Action: page.Base + "/billing/top-ups/new", Submit: "Continue", Cancel: page.Base + "/billing"}
	amounts := ui.FormField{Name: "amount", Label: "Amount", Kind: ui.Choice, Required: true}
	for _, minor := range terms.Amounts {
		q, err := terms.Quote(minor)
		if err != nil {
			return form, err
		}
		label := ui.Sayf("%s for %s of credit", terms.Currency.Text(minor), ui.USD(q.Credit))
		if q.Bonus > 0 {
			label = ui.Sayf("%s, with a bonus of %s", label, q.Bonus)
		}
		amounts.Options = append(amounts.Options, ui.Option{Value: terms.Currency.Decimal(minor), Label: label})
	}
	amounts.Options = append(amounts.Options, ui.Option{Value: otherAmount, Label: "Another amount"})
	hint := ui.Sayf("From %s to %s.", terms.Currency.Decimal(terms.Minimum), terms.Currency.Text(terms.Maximum))
	if terms.Currency.Code != "usd" || terms.Rate.String() != "1" {
		hint = ui.Sayf("%s 1 %s buys %s USD of credit.", hint, strings.ToUpper(terms.Currency.Code), terms.Rate)
	}
	for _, tier := range terms.Tiers {
		hint = ui.Sayf("%s From %s on there is a bonus of %s.", hint, terms.Currency.Text(tier.From), tier.Bonus)
	}
	ways := ui.FormField{Name: "provider", Label: "Way to pay", Kind: ui.Choice, Required: true}
	for _, info := range c.Topups.Infos() {
		if len(info.Methods) == 0 {
			ways.Options = append(ways.Options, ui.Option{Value: info.Name, Label: ui.Data(info.Title)})
		}
		for _, m := range info.Methods {
			ways.Options = append(ways.Options, ui.Option{Value: info.Name + "/" + m.Name, Label: show.PayTitle(m.Title)})
		}
	}
	form.Fields = []ui.FormField{amounts,
		{Name: "other", Label: "Another amount", After: ui.Data(strings.ToUpper(terms.Currency.Code)), Numeric: true, Hint: hint},
		ways, {Name: "once", Kind: ui.Hidden, Value: once}}
	if c.Topups.SavesCards() {
		form.Fields = append(form.Fields, ui.FormField{Name: "save", Label: "Save my card for automatic top-ups", Kind: ui.Check, Checked: save,
			Hint: "You switch them on afterwards. Only the kind of the card and its last four digits are stored here."})
	}
	return form, nil
}

func (c *console) newTopup(v *page.Visit) (page.Responder, error) {
	form, err := c.topupForm(rand.Text(), v.Query("save") == "yes")
	return page.FormPage("Add credit", form), err
}

// readTopupForm reads an order. A typed amount counts only if the visitor has chosen to type one, or has chosen
// none. field is the name of the field with the amount.
func (c *console) readTopupForm(v *page.Visit, form *ui.PostForm) (o topup.NewOrder, field string, err error) {
	field = "amount"
	text := form.Field("amount").Value
	if other := strings.TrimSpace(form.Field("other").Value); text == otherAmount || text == "" && other != "" {
		field, text = "other", other
	}
	o.Account = v.Account()
	o.Provider, o.Method, _ = strings.Cut(form.Field("provider").Value, "/")
	if save := form.Field("save"); save != nil {
		o.SaveCard = save.Checked
	}
	if o.Minor, err = c.Topups.Terms.Currency.Parse(text); err != nil {
		err = fault.At(fault.InvalidRequest, field, "The amount %s.", err)
	}
	return o, field, err
}

// createTopup commits the order and then asks the provider for a payment page. If the provider does not answer,
// the page of the top-up has a button to try again.
func (c *console) createTopup(v *page.Visit) (page.Responder, error) {
	form, err := c.topupForm("", false)
	if err != nil {
		return nil, err
	}
	return v.Submit(&form, func() (page.Responder, error) {
		order, field, err := c.readTopupForm(v, &form)
		if err != nil {
			return nil, err
		}
		once, err := v.Once(&form, "top-up")
		if err != nil {
			return nil, err
		}
		id, err := page.Write(v, func(tx *store.Tx) (string, error) {
			id, _, err := page.OnceTx(tx, once, func() (string, error) {
				t, err := c.Topups.CreateTx(tx, order)
				return t.ID, err
			})
			return id, err
		})
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Param == "amount" {
			return nil, fault.At(f.Code, field, "%s", f.Message())
		}
		if err != nil {
			return nil, err
		}
		return c.beginTopup(v, id)
	}, func() (page.FullPage, error) { return page.FormPage("Add credit", form), nil })
}

// beginTopup asks the provider for a payment page and redirects to the page of the top-up.
func (c *console) beginTopup(v *page.Visit, id string) (page.Responder, error) {
	path := "/billing/top-ups/" + id
	err := c.Topups.Begin(v.Context(), id)
	if errors.Is(err, topup.ErrNoAnswer) {
		c.Log.Warn("console: a payment could not be begun; trying again later", "topup", id, "error", err)
		return page.To(path, "unanswered"), nil
	}
	return page.To(path, ""), err
}

// ownTopup returns the visitor's top-up named in the path, with its refunds, disputes and documents.
func ownTopup(v *page.Visit) (t topup.Topup, changes []topup.Reversal, papers []invoice.IssuedDocument, err error) {
	err = v.View(func(tx *store.Tx) (err error) {
		if t, err = topup.GetTx(tx, v.PathID()); err != nil {
			return err
		}
		if t.Account != v.Account() {
			return fault.New(fault.NotFound, "There is no top-up with the id %q. Check the id.", fault.Excerpt(v.PathID()))
		}
		if changes, err = topup.ReversalsTx(tx, t.ID); err != nil {
			return err
		}
		papers, err = invoice.OfTopupTx(tx, t.ID)
		return err
	})
	return t, changes, papers, err
}

func (c *console) showTopup(v *page.Visit) (page.Responder, error) {
	t, changes, papers, err := ownTopup(v)
	if err != nil {
		return nil, err
	}
	info := c.Topups.Info(t.Provider)
	content := topupPage{Title: "Top-up", State: show.TopupBadge(t), Facts: show.TopupFacts(t, info), Changes: show.TopupReversals(t, changes),
		Papers: show.Documents(papers, invoicesPath)}
	if t.IsPaid() {
		content.Title, content.Whose = "Receipt", v.Session.User.Email
	}
	if t.IsOpen() && t.Address != "" {
		content.Pay = &ui.Link{Href: t.Address, Text: ui.Sayf("Pay %s with %s", t.Currency.Text(t.Minor), show.WayToPay(t, info)),
			Icon: "external-link", Button: true, Main: true}
	}
	if !t.IsPaid() && !t.IsRefused() {
		content.Check = &ui.Button{Action: page.Base + "/billing/top-ups/" + t.ID + "/check", Label: "Check the payment"}
		if t.IsOpen() && t.Address == "" {
			content.Check.Label = "Try again"
		}
	}
	if !t.Live && t.IsOpen() {
		content.Notice = &ui.Notice{Tone: ui.Warn, Title: "This shop takes no real money yet.", Text: "Pay with a test card."}
	}
	if t.IsRefused() && !t.IsAutomatic() {
		content.Notice = &ui.Notice{Tone: ui.Bad, Title: "The payment could not be started.",
			Text: ui.Sayf("Nothing was charged. Add credit again, or in another way. %s", c.Brand.AskFor("if it fails again")),
			Link: c.Brand.ContactLink()}
	}
	texts := map[string]ui.Words{
		"unanswered": "The payment provider does not answer at the moment. Try again in a minute; nothing was charged.",
		"checked":    "The payment provider was asked. This is the present state.",
	}
	if t.IsOpen() {
		texts["back"] = "If you have paid, the credit arrives within a minute, without any action of yours."
	}
	return page.FullPage{Name: "topup", Title: content.Title, Main: content}.WithNotice(v, texts), nil
}

// checkTopup asks the provider for the state of a top-up, or for a payment page if the top-up has none yet.
func (c *console) checkTopup(v *page.Visit) (page.Responder, error) {
	t, _, _, err := ownTopup(v)
	if err != nil {
		return nil, err
	}
	if t.State == topup.Created {
		return c.beginTopup(v, t.ID)
	}
	if err := c.Topups.Sync(v.Context(), t.ID, ""); err != nil {
		c.Log.Warn("console: a payment could not be checked", "topup", t.ID, "error", err)
		return page.To("/billing/top-ups/"+t.ID, "unanswered"), nil
	}
	return page.To("/billing/top-ups/"+t.ID, "checked"), nil
}
