package operatorpages

import (
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
	"tollgate/internal/console/show"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// accountPage is one account for the operator. The address selects the list on the page.
type accountPage struct {
	Name    string
	State   part.Badge
	Switch  any
	Stats   part.FigureRow
	Tabs    part.Tabs
	Facts   part.Facts
	Credit  *part.Inputs
	Change  *part.Inputs
	Prices  *part.Inputs
	Note    *part.Inputs
	New     *part.Inputs // a key or a user
	NewWord string
	List    *part.DataTable
	None    string // where the list is empty
	Pager   part.Pager
	Welcome *part.Snippets
	Unset   *part.Notice // warns that public_url is not set, so the text would have an unreachable address
}

// accountForms are rejected forms of the page.
type accountForms struct{ credit, change, prices, note, user *part.Inputs }

func accountForm(a account.Account) part.Inputs {
	return part.Inputs{Action: page.Base + "/operator/accounts/" + a.ID, Submit: "Save", Fields: []part.FormField{
		{Name: "name", Label: "Name", Value: a.Name, Required: true},
		{Name: "email", Label: "Email", Kind: "email", Value: a.Email, Hint: "For contact only. Users keep signing in with their own emails."},
		{Name: "overdraft_floor_usd", Label: "Floor", Before: "$", Numeric: true, Value: a.Money.Floor.String(),
			Hint: "The lowest allowed balance, zero or negative."},
		testField(a.Test),
	}}
}

// testField marks an account as one for tests.
func testField(on bool) part.FormField {
	return part.FormField{Name: "test", Label: "Test account", Kind: part.Check, On: on,
		Hint: "The account may use sandbox models although the catalog has real lines."}
}

func pricesForm(a account.Account) part.Inputs {
	var models strings.Builder
	for _, id := range slices.Sorted(maps.Keys(a.Prices.Models)) {
		fmt.Fprintf(&models, "%s %s\n", id, a.Prices.Models[id])
	}
	hint := "Multiplies the catalog's prices: 0.9 gives 10 % off. It holds for what is admitted from now on."
	if a.Prices.Unreadable != "" {
		hint = "The stored prices cannot be read (" + a.Prices.Unreadable + "), and the account's requests are refused. " +
			"Save both fields to mend it."
	}
	return part.Inputs{Action: page.Base + "/operator/accounts/" + a.ID + "/prices", Submit: "Save prices", Fields: []part.FormField{
		{Name: "price_factor", Label: "Price factor", Before: "×", Numeric: true, Value: a.Prices.Factor.String(), Hint: hint},
		{Name: "prices", Label: "Factors of single models", Kind: part.Area, Value: models.String(),
			Hint: "Override the price factor for single models. One model and factor per line: swift-1 0.8."},
	}}
}

func noteForm(a account.Account) part.Inputs {
	return part.Inputs{Action: page.Base + "/operator/accounts/" + a.ID + "/note", Submit: "Save note", Fields: []part.FormField{
		{Name: "note", Label: "Note", Kind: part.Area, Value: a.Note, Prefix: "account-",
			Hint: "Only operators see the note. The log records who changed it."},
	}}
}

func accountKeyForm(id, once string) part.Inputs {
	return part.Inputs{Action: page.Base + "/operator/accounts/" + id + "/keys", Submit: "Create key", Fields: []part.FormField{
		{Name: "name", Label: "Name", Hint: "What uses the key. You or the account's users set limits on the key's page."},
		{Name: "once", Kind: part.Unshown, Value: once, Prefix: "key-"},
	}}
}

// accountViews returns the lists of an account. The first is the overview.
func accountViews() []string {
	return []string{"", "keys", "users", "money", "requests", "jobs", "webhook", "log"}
}

func (c *console) showAccount(v *page.Visit) (page.Outgoing, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	return c.accountWith(v, a, accountForms{}, 0)
}

// accountWith shows an account with forms, which may have errors.
func (c *console) accountWith(v *page.Visit, a account.Account, forms accountForms, status int) (page.Outgoing, error) {
	path := "/operator/accounts/" + a.ID
	view := v.Query("view")
	if forms.user != nil {
		view = "users"
	}
	shown := accountPage{Name: a.Name, State: accountBadge(a), Tabs: part.Tabs{Label: "Of this account"}}
	for _, name := range accountViews() {
		tab := part.Tab{Href: page.Base + path + "?view=" + name, Text: part.Title(name), Current: name == view}
		if name == "" {
			tab.Href, tab.Text = page.Base+path, "Overview"
		}
		shown.Tabs.Items = append(shown.Tabs.Items, tab)
	}
	shown.Tabs.Items = append(shown.Tabs.Items, part.Tab{Text: "Usage",
		Href: page.AddressOf("/operator/usage", url.Values{"account": {a.ID}, "by": {string(spending.ByModel)}})})
	shown.Switch = v.Confirm(part.Confirm{ID: "disable", Button: "Disable", Title: "Disable " + a.Name + "?", Danger: true,
		Action: page.Base + path + "/disable", Text: []string{"All its keys answer 401 at once, and " +
			"jobs that wait fail and are refunded. Its money stays, and its users still see its pages, which say so. You can enable it again."}})
	if a.Money.Disabled {
		shown.Switch = part.Act{Action: page.Base + path + "/enable", Word: "Enable", About: a.Name}
	}
	shown.Stats = part.FigureRow{{Label: "Balance", Value: part.Money{Amount: a.Money.Balance},
		Note: part.Text{Text: part.Credits(a.Money.Balance)}},
		{Label: "On hold", Value: part.Money{Amount: a.Money.Held}, Note: part.Text{Text: "for running requests"}},
		{Label: "Floor", Value: part.Money{Amount: a.Money.Floor}, Note: part.Text{Text: "the lowest allowed balance"}},
		{Label: "Usage above reservations", Value: part.Money{Amount: a.Over}, Note: part.Text{Text: "not charged to anybody"}}}
	if err := v.View(func(tx *store.Tx) error { return c.fillTx(tx, &shown, v, a, view, forms) }); err != nil {
		return nil, err
	}
	return page.Whole{Name: "account", Title: a.Name, Main: shown, Status: status}.Done(v, map[string]string{
		"created":  "The account is there. Credit it, create a key, and send the welcome text.",
		"credited": "Done: the balance below is the one after it.",
		"changed":  "Saved.",
		"priced":   "Saved. What is admitted from now on is billed by it.",
		"disabled": "The account is disabled: its keys answer 401.",
		"enabled":  "The account works again.",
		"factor":   "The second factor is off: the password alone signs this user in, who can set it up anew.",
		"user":     "Done. Nothing is mailed: tell the user yourself.",
		"gone":     "The user is deleted, and all its sessions have ended.",
		"deleted":  "The key is deleted: it answers 401 from now on.",
	}), nil
}

// fillTx reads the content of an account's view.
func (c *console) fillTx(tx *store.Tx, p *accountPage, v *page.Visit, a account.Account, view string, forms accountForms) (err error) {
	after, path := v.Query("after"), "/operator/accounts/"+a.ID
	list := func(t part.DataTable, more bool, last, none string) {
		p.List, p.None, p.Pager = &t, none, v.Pager(path, more, last)
	}
	switch view {
	case "keys":
		keys, more, err := account.ListKeysTx(tx, a.ID, after, page.Rows)
		if err != nil {
			return err
		}
		form := accountKeyForm(a.ID, rand.Text())
		p.New, p.NewWord = &form, "Create a key"
		list(keysTable(keys), more, page.Last(keys, func(k account.Key) string { return k.ID }), "No keys yet.")
	case "users":
		users, more, err := account.ListUsersTx(tx, a.ID, after, page.Rows)
		if err != nil {
			return err
		}
		form := accountUserForm(a.ID)
		if forms.user != nil {
			form = *forms.user
		}
		p.New, p.NewWord = &form, "Add a user"
		list(usersTable(v, users), more, page.Last(users, func(u account.User) string { return u.ID }), "Nobody signs in to this account.")
	case "money":
		moves, more, err := movement.ListTx(tx, movement.Selection{Account: a.ID, After: after, Limit: page.Rows})
		if err != nil {
			return err
		}
		list(show.Movements(moves, page.Base+"/operator"), more, page.Last(moves, func(e movement.Entry) string { return e.ID }),
			"No money has moved yet.")
	case "requests":
		found, err := requestlog.ListTx(tx, requestlog.Selection{Account: a.ID, After: after, Limit: page.Rows})
		if err != nil {
			return err
		}
		list(requestsTable(found.Receipts, nil), found.More, found.Next, "No requests yet.")
	case "jobs":
		found, more, err := job.ListTx(tx, job.Filter{Account: a.ID, After: after, Limit: page.Rows})
		if err != nil {
			return err
		}
		jobs := jobRows(found)
		list(jobsTable(jobs, nil), more, page.Last(jobs, func(j jobRow) string { return j.ID }), "No jobs yet.")
	case "webhook":
		found, more, err := c.Webhooks.DeliveriesTx(tx, a.ID, after, page.Rows)
		if err != nil {
			return err
		}
		list(deliveriesTable(found), more, page.Last(found, func(d webhook.Delivery) string { return d.ID }),
			"Nothing was delivered in the last days.")
	case "log":
		found, more, err := operator.LogTx(tx, operator.LogFilter{Account: a.ID, After: after, Limit: page.Rows})
		if err != nil {
			return err
		}
		list(logTable(found, nil), more, page.Last(found, func(e operator.LogRow) string { return e.ID }),
			"No operator has changed anything here.")
	default:
		return c.overviewTx(tx, p, v, a, forms)
	}
	return nil
}

func (c *console) overviewTx(tx *store.Tx, p *accountPage, v *page.Visit, a account.Account, forms accountForms) error {
	u, err := ledger.UsageTx(tx, a.ID)
	if err != nil {
		return err
	}
	p.Facts = part.Facts{{Name: "Id", Value: part.Ident{ID: a.ID}}, {Name: "Email", Value: part.Dashed(a.Email)},
		{Name: "Since", Value: part.Moment{MS: a.CreatedMS}}, {Name: "Today (UTC)", Value: part.Text{Text: fmt.Sprintf("%s, %s failed, %s",
			part.Requests(u.Today.Requests), part.Thousands(u.Today.Failed), part.USD(u.Today.Cost))}},
		{Name: "In all", Value: part.Text{Text: part.Requests(u.Total.Requests) + ", " + part.USD(u.Total.Cost)}}}
	credit, change, note := creditForm(a.ID, rand.Text()), accountForm(a), noteForm(a)
	credit.Field("usd").Value, credit.Field("note").Value = v.Filled("usd"), v.Filled("note")
	if forms.credit != nil {
		credit = *forms.credit
	}
	if forms.change != nil {
		change = *forms.change
	}
	prices := pricesForm(a)
	if forms.prices != nil {
		prices = *forms.prices
	}
	if forms.note != nil {
		note = *forms.note
	}
	p.Credit, p.Change, p.Prices, p.Note = &credit, &change, &prices, &note
	if a.Email, err = account.SignInOfTx(tx, a); err != nil { // for the text with the sign-in
		return err
	}
	welcome := c.welcome(a, nil, "")
	p.Welcome, p.Unset = &welcome, c.unset()
	return nil
}

// deliveriesTable lists deliveries with their receivers and buttons.
func deliveriesTable(list []webhook.Delivery) part.DataTable {
	t := show.Deliveries(list)
	t.Columns = append(t.Columns, part.Column{Title: "Address"}, part.Column{Title: "Change"})
	for i, d := range list {
		t.Rows[i].Cells = append(t.Rows[i].Cells, part.Text{Text: d.URL, Mono: true},
			part.Act{Action: page.Base + "/operator/deliveries/" + d.ID + "/resend", Word: "Resend", About: d.Event})
	}
	return t
}

func (c *console) resendDelivery(v *page.Visit) (page.Outgoing, error) {
	d, err := operator.Resend(v.Context(), c.DB, c.Webhooks, show.By(v), v.PathID())
	if err != nil {
		return nil, err
	}
	return page.Redirect(page.Base + "/operator/accounts/" + d.Account + "?view=webhook"), nil
}

// createKey creates a key for a customer and shows its secret in the same response, in the text to
// send.
func (c *console) createKey(v *page.Visit) (page.Outgoing, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := accountKeyForm(a.ID, "")
	if err := v.Read(&form); err != nil {
		return nil, err
	}
	once, err := v.Once(&form, "key "+a.ID)
	if err != nil {
		return nil, err
	}
	var secret string
	if err := v.Update(func(tx *store.Tx) error {
		_, again, err := page.OnceTx(tx, once, func() (id string, err error) {
			k, made, err := operator.CreateKeyTx(tx, show.By(v), a.ID, account.KeySettings{Name: form.Field("name").Value})
			secret = made
			return k.ID, err
		})
		if again {
			secret = ""
		}
		if err == nil {
			a.Email, err = account.SignInOfTx(tx, a)
		}
		return err
	}); err != nil {
		return nil, err
	}
	return c.sending("Key created", a, nil, secret, operator.Credit{}), nil
}
