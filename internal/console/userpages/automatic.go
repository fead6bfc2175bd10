package userpages

import (
	"errors"
	"strings"

	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/topup"
)

// automaticPage shows the saved card and the settings of automatic top-ups.
type automaticPage struct {
	State  ui.Badge
	Paused *ui.Notice
	Card   string       // empty without a saved card
	Form   *ui.PostForm // nil if there is no card, or the shop cannot charge the card
	Off    *ui.Button
	Remove ui.Button
	Empty  *ui.EmptyState
}

// saving returns handle if customers can save cards. Otherwise it returns a handler that answers 404.
func (c *console) saving(handle func(*page.Visit) (page.Responder, error)) func(*page.Visit) (page.Responder, error) {
	return page.OnlyIf(c.Topups.SavesCards(), handle)
}

// savingTx reports whether the customer can save a card, or has saved one. paused explains why automatic
// top-ups are paused; it is nil if they are not.
func (c *console) savingTx(tx *store.Tx, account string) (saving bool, paused *ui.Notice, err error) {
	if c.Topups == nil {
		return false, nil, nil
	}
	a, found, err := topup.AutomaticTx(tx, account)
	if a.On {
		paused = pausedNotice(c.Topups.PauseOf(a))
	}
	return found || c.Topups.SavesCards(), paused, err
}

// pausedNotice explains why automatic top-ups are paused, and what to do. It returns nil if there is no reason.
func pausedNotice(reason topup.Pause) *ui.Notice {
	n := &ui.Notice{Tone: ui.Warn, Title: "Automatic top-ups are paused.",
		Link: &ui.Link{Href: page.Base + "/billing/top-ups/new", Text: "Add credit now"}}
	switch reason {
	case "":
		return nil
	case topup.PauseAuthentication:
		n.Text = "Your bank wants you to confirm the payment. Pay once on the payment page; then switch automatic top-ups on again."
	case topup.PauseDispute:
		n.Text = "A payment of your account is disputed. Ask the operator."
	case topup.PauseCurrency:
		n.Text = "The operator has changed currency or limits. Save your settings again."
		n.Link = &ui.Link{Href: page.Base + "/billing/automatic", Text: "Automatic top-up"}
	case topup.PauseUnavailable:
		n.Text = "This shop charges no saved cards at the moment, so add credit yourself. They go on by themselves when it charges cards again."
	case topup.PauseMode:
		n.Text = "The shop has changed between test mode and live mode. Remove the card, and save another one with your next top-up."
		n.Link = &ui.Link{Href: page.Base + "/billing/automatic", Text: "Automatic top-up"}
	default:
		n.Text = "Your card was declined. Add credit another way, or remove the card and save another one; then switch them on again."
	}
	return n
}

// automaticForm asks for the settings. It is filled in with the settings in a, but amounts in a former currency
// stay empty.
func (c *console) automaticForm(a topup.Automatic) ui.PostForm {
	terms := c.Topups.Terms
	unit := strings.ToUpper(terms.Currency.Code)
	amount := func(minor int64) string {
		if minor == 0 || a.Currency != terms.Currency.Code {
			return ""
		}
		return terms.Currency.Decimal(minor)
	}
	level := ""
	if a.Level > 0 {
		level = a.Level.String()
	}
	submit := ui.Words("Switch on")
	switch {
	case a.On && c.Topups.PauseOf(a) != "":
		submit = "Switch on again"
	case a.On:
		submit = "Save"
	}
	return ui.PostForm{Action: page.Base + "/billing/automatic", Submit: submit, Cancel: page.Base + "/billing",
		Fields: []ui.FormField{
			{Name: "level", Label: "When the balance falls below", Before: "$", Numeric: true, Required: true, Value: level},
			{Name: "amount", Label: "Pay", After: ui.Data(unit), Numeric: true, Required: true, Value: amount(a.Minor),
				Hint: ui.Sayf("From %s to %s each time.", terms.Currency.Decimal(terms.Minimum), terms.Currency.Text(terms.Maximum))},
			{Name: "monthly", Label: "At most in a month", After: ui.Data(unit), Numeric: true, Required: true, Value: amount(a.Monthly),
				Hint: ui.Sayf("Up to %s. A month is a calendar month in UTC.", terms.Currency.Text(terms.Automatic))},
		}}
}

func (c *console) automatic(v *page.Visit) (page.Responder, error) {
	p, err := c.automaticWith(v, nil)
	return p, err
}

// automaticWith shows the page with a form, which may have errors. If form is nil, the page has a new form.
func (c *console) automaticWith(v *page.Visit, form *ui.PostForm) (page.FullPage, error) {
	var a topup.Automatic
	var found bool
	err := v.View(func(tx *store.Tx) (err error) {
		a, found, err = topup.AutomaticTx(tx, v.Account())
		return err
	})
	if err != nil {
		return page.FullPage{}, err
	}
	if !found && !c.Topups.SavesCards() {
		return page.FullPage{}, page.NoPage()
	}
	pause := c.Topups.PauseOf(a)
	content := automaticPage{State: ui.Badge{Label: "off"},
		Remove: ui.Button{Action: page.Base + "/billing/automatic/remove", Label: "Remove card"}}
	switch {
	case !found:
		content.Empty = &ui.EmptyState{Title: "No saved card", Text: "Your card is saved with your next top-up, if you choose so. " +
			"Then your account can add credit by itself when the balance is low, within a maximum that you set.",
			Link: &ui.Link{Href: page.Base + "/billing/top-ups/new?save=yes", Text: "Add credit and save a card", Button: true, Main: true}}
	default:
		content.Card = a.Card.Brand + " ending in " + a.Card.Last
		if fresh := c.automaticForm(a); form == nil {
			form = &fresh
		}
		if !pause.IsByShop() {
			content.Form = form
		}
	}
	if a.On {
		content.State, content.Paused = ui.Badge{Tone: ui.OK, Label: "on"}, pausedNotice(pause)
		content.Off = &ui.Button{Action: page.Base + "/billing/automatic/off", Label: "Switch off"}
	}
	if content.Paused != nil {
		content.State = ui.Badge{Tone: ui.Warn, Label: "paused"}
	}
	return page.FullPage{Name: "automatic", Title: "Automatic top-up", Main: content}.WithNotice(v, map[string]ui.Words{
		"on":         "Automatic top-ups are on.",
		"off":        "Automatic top-ups are off. Your card is still saved.",
		"removed":    "Your card is removed, and automatic top-ups are off.",
		"unanswered": "Automatic top-ups are off. The payment provider does not answer at the moment; remove the card again in a minute.",
	}), nil
}

// readAutomatic reads the settings from a form. An error names its field.
func (c *console) readAutomatic(form *ui.PostForm) (s topup.AutomaticSettings, err error) {
	if s.Level, err = money.ParseTyped(strings.TrimSpace(form.Field("level").Value)); err != nil {
		return s, fault.At(fault.InvalidRequest, "level", "The level must be an amount in USD, such as 10.")
	}
	for _, f := range []struct {
		name  string
		minor *int64
	}{{"amount", &s.Minor}, {"monthly", &s.Monthly}} {
		if *f.minor, err = c.Topups.Terms.Currency.Parse(strings.TrimSpace(form.Field(f.name).Value)); err != nil {
			return s, fault.At(fault.InvalidRequest, f.name, "The amount %s.", err)
		}
	}
	return s, nil
}

func (c *console) switchOn(v *page.Visit) (page.Responder, error) {
	form := c.automaticForm(topup.Automatic{})
	return v.Submit(&form, func() (page.Responder, error) {
		s, err := c.readAutomatic(&form)
		if err != nil {
			return nil, err
		}
		return v.Done("/billing/automatic", "on", func(tx *store.Tx) error { return c.Topups.SwitchOnTx(tx, v.Account(), s) })
	}, func() (page.FullPage, error) { return c.automaticWith(v, &form) })
}

func (c *console) switchOff(v *page.Visit) (page.Responder, error) {
	return v.Done("/billing/automatic", "off", func(tx *store.Tx) error { return topup.SwitchOffTx(tx, v.Account()) })
}

func (c *console) removeCard(v *page.Visit) (page.Responder, error) {
	err := c.Topups.RemoveCard(v.Context(), v.Account())
	if errors.Is(err, topup.ErrNoAnswer) {
		c.Log.Warn("console: a saved card could not be removed", "account", v.Account(), "error", err)
		return page.To("/billing/automatic", "unanswered"), nil
	}
	return page.To("/billing/automatic", "removed"), err
}
