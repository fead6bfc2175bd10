package operatorpages

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/job"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/operator"
	"tollgate/internal/store"
	"tollgate/internal/webhook"
)

// accountPage shows one account to the operator. The page's address selects one of the account's lists.
type accountPage struct {
	Name             string
	State            ui.Badge
	Switch           any
	Stats            ui.FigureRow
	Tabs             ui.Tabs
	Facts            ui.Facts
	Credit           *ui.PostForm
	Change           *ui.PostForm
	Prices           *ui.PostForm
	Note             *ui.PostForm
	New              *ui.PostForm // a key or a user
	NewTitle         ui.Words
	List             *ui.DataTable
	None             ui.Words // shown if the list is empty
	Pager            ui.Pager
	Welcome          *ui.Snippets // text for the customer
	PublicURLWarning *ui.Notice   // warns about an address in the text that customers may not reach; may be nil
}

// accountForms are the rejected forms of the page. Other forms are nil.
type accountForms struct{ credit, change, prices, note, user *ui.PostForm }

func accountForm(a account.Account) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + a.ID, Submit: "Save", Fields: []ui.FormField{
		{Name: "name", Label: "Name", Value: a.Name, Required: true},
		{Name: "email", Label: "Email", Kind: "email", Value: a.Email, Hint: "For contact only. Users keep signing in with their own emails."},
		{Name: "overdraft_floor_usd", Label: "Floor", Before: "$", Numeric: true, Value: a.Money.Floor.String(),
			Hint: "The lowest allowed balance, zero or negative."},
		testField(a.Test),
	}}
}

func testField(checked bool) ui.FormField {
	return ui.FormField{Name: "test", Label: "Test account", Kind: ui.Check, Checked: checked,
		Hint: "The account may use sandbox models although the catalog has real lines."}
}

func pricesForm(a account.Account) ui.PostForm {
	var models strings.Builder
	for _, id := range slices.Sorted(maps.Keys(a.Prices.Models)) {
		fmt.Fprintf(&models, "%s %s\n", id, a.Prices.Models[id])
	}
	hint := ui.Words("Multiplies the catalog's prices: 0.9 gives 10 % off. It applies to new requests.")
	if a.Prices.Unreadable != "" {
		hint = ui.Sayf("The stored prices cannot be read (%s), and the account's requests are refused. Save both fields to fix them.",
			a.Prices.Unreadable)
	}
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + a.ID + "/prices", Submit: "Save prices", Fields: []ui.FormField{
		{Name: "price_factor", Label: "Price factor", Before: "×", Numeric: true, Value: a.Prices.Factor.String(), Hint: hint},
		{Name: "prices", Label: "Factors of single models", Kind: ui.Area, Value: models.String(),
			Hint: "Override the price factor for single models. One model and factor per line: swift-1 0.8."},
	}}
}

func noteForm(a account.Account) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + a.ID + "/note", Submit: "Save note", Fields: []ui.FormField{
		{Name: "note", Label: "Note", Kind: ui.Area, Value: a.Note, Prefix: "account-",
			Hint: "Only operators see the note. The log records who changed it."},
	}}
}

func accountKeyForm(id, once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + id + "/keys", Submit: "Create key", Fields: []ui.FormField{
		{Name: "name", Label: "Name", Hint: "What uses the key. You or the account's users set limits on the key's page."},
		{Name: "once", Kind: ui.Hidden, Value: once, Prefix: "key-"},
	}}
}

// accountViews returns the views of an account: the overview, and one view for each list.
func accountViews() []string {
	return []string{"", "keys", "users", "money", "requests", "jobs", "webhook", "log"}
}

func (c *console) showAccount(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	return c.accountWith(v, a, accountForms{})
}

// accountWith shows an account with rejected forms.
func (c *console) accountWith(v *page.Visit, a account.Account, forms accountForms) (page.FullPage, error) {
	path := "/operator/accounts/" + a.ID
	view := v.Query("view")
	if forms.user != nil {
		view = "users"
	}
	content := accountPage{Name: a.Name, State: accountBadge(a), Tabs: ui.Tabs{Label: "Views of this account"}}
	for _, name := range accountViews() {
		tab := ui.Tab{Href: page.Base + path + "?view=" + name, Text: ui.Words(ui.Title(name)), Current: name == view}
		if name == "" {
			tab.Href, tab.Text = page.Base+path, "Overview"
		}
		content.Tabs.Items = append(content.Tabs.Items, tab)
	}
	content.Tabs.Items = append(content.Tabs.Items, ui.Tab{Text: "Usage",
		Href: page.AddressOf("/operator/usage", url.Values{"account": {a.ID}, "by": {string(spending.ByModel)}})})
	content.Switch = v.Confirm(ui.Confirm{ID: "disable", Button: "Disable", Title: ui.Sayf("Disable %s?", a.Name), Danger: true,
		Action: page.Base + path + "/disable", Text: []ui.Words{"All its keys answer 401 at once, and " +
			"its queued jobs fail and are refunded. The balance is kept, and its users can still sign in. You can enable it again."}})
	if a.Money.Disabled {
		content.Switch = ui.Button{Action: page.Base + path + "/enable", Label: "Enable", About: ui.Data(a.Name)}
	}
	content.Stats = ui.FigureRow{{Label: "Balance", Value: ui.Money{Amount: a.Money.Balance},
		Note: ui.Text{Text: ui.Credits(a.Money.Balance)}},
		{Label: "On hold", Value: ui.Money{Amount: a.Money.Held}, Note: ui.Text{Text: "for running requests"}},
		{Label: "Floor", Value: ui.Money{Amount: a.Money.Floor}, Note: ui.Text{Text: "the lowest allowed balance"}},
		{Label: "Usage above reservations", Value: ui.Money{Amount: a.Over}, Note: ui.Text{Text: "not charged to anybody"}}}
	if err := v.View(func(tx *store.Tx) error { return c.fillTx(tx, &content, v, a, view, forms) }); err != nil {
		return page.FullPage{}, err
	}
	return page.FullPage{Name: "account", Title: ui.Data(a.Name), Main: content}.WithNotice(v, map[string]ui.Words{
		"created":  "The account is created. Credit it, create a key, and send the welcome text.",
		"credited": "Done. The balance below includes the change.",
		"repeated": "This reference was credited to the account before, so no money was moved.",
		"marked":   "Saved. The statements show the change.",
		"changed":  "Saved.",
		"priced":   "Saved. The prices apply to new requests.",
		"disabled": "The account is disabled: its keys answer 401.",
		"enabled":  "The account works again.",
		"factor":   "The second factor is off. The user signs in with the password alone and can set up a new one.",
		"user":     "Done. No mail is sent: tell the user yourself.",
		"mailed":   "The link is on its way by mail. It is not shown here.",
		"unlinked": "The provider no longer signs the user in, and all sessions of the user have ended.",
		"gone":     "The user is deleted, and all its sessions have ended.",
		"deleted":  "The key is deleted: it answers 401 from now on.",
	}), nil
}

// fillTx reads the content of an account's view.
func (c *console) fillTx(tx *store.Tx, p *accountPage, v *page.Visit, a account.Account, view string, forms accountForms) error {
	after, path := v.Query("after"), "/operator/accounts/"+a.ID
	list := func(err error, t ui.DataTable, more bool, last string, none ui.Words) error {
		p.List, p.None, p.Pager = &t, none, v.Pager(path, more, last)
		return err
	}
	switch view {
	case "keys":
		p.New, p.NewTitle = new(accountKeyForm(a.ID, rand.Text())), "Create a key"
		keys, more, err := account.ListKeysTx(tx, a.ID, after, page.Rows)
		return list(err, keysTable(keys), more, page.Last(keys, func(k account.Key) string { return k.ID }), "No keys yet.")
	case "users":
		p.New, p.NewTitle = cmp.Or(forms.user, new(accountUserForm(a.ID))), "Add a user"
		users, more, err := account.ListUsersTx(tx, a.ID, after, page.Rows)
		if err != nil {
			return err
		}
		t, err := c.usersTableTx(tx, v, users)
		return list(err, t, more, page.Last(users, func(u account.User) string { return u.ID }),
			"Nobody signs in to this account.")
	case "money":
		moves, more, err := movement.ListTx(tx, movement.Selection{Account: a.ID, After: after, Limit: page.Rows})
		if err != nil {
			return err
		}
		t, err := c.movementsTableTx(tx, v, a.ID, moves)
		return list(err, t, more, page.Last(moves, func(e movement.Entry) string { return e.ID }),
			"No money has moved yet.")
	case "requests":
		results, err := requestlog.ListTx(tx, requestlog.Selection{Account: a.ID, After: after, Limit: page.Rows})
		return list(err, requestsTable(show.GroupRepeats(results.Receipts, false), nil), results.More, results.Next, "No requests yet.")
	case "jobs":
		results, more, err := job.ListTx(tx, job.Filter{Account: a.ID, After: after, Limit: page.Rows})
		jobs := jobRows(results)
		return list(err, jobsTable(jobs, nil), more, page.Last(jobs, func(j jobRow) string { return j.ID }), "No jobs yet.")
	case "webhook":
		results, more, err := c.Webhooks.DeliveriesTx(tx, a.ID, after, page.Rows)
		return list(err, deliveriesTable(results), more, page.Last(results, func(d webhook.Delivery) string { return d.ID }),
			"Nothing was delivered in the last days.")
	case "log":
		results, more, err := operator.LogTx(tx, operator.LogFilter{Account: a.ID, After: after, Limit: page.Rows})
		return list(err, logTable(results, nil), more, page.Last(results, func(e operator.LogRow) string { return e.ID }),
			"No operator has changed anything here.")
	}
	return c.overviewTx(tx, p, v, a, forms)
}

func (c *console) overviewTx(tx *store.Tx, p *accountPage, v *page.Visit, a account.Account, forms accountForms) error {
	u, err := ledger.UsageTx(tx, a.ID)
	if err != nil {
		return err
	}
	p.Facts = ui.Facts{{Name: "Id", Value: ui.Ident{ID: a.ID}}, {Name: "Email", Value: ui.OrDash(a.Email)},
		{Name: "Since", Value: ui.Moment{MS: a.CreatedMS}},
		{Name: "Today (UTC)", Value: ui.Text{Text: ui.Sayf("%s, %s failed, %s",
			ui.Requests(u.Today.Requests), ui.Thousands(u.Today.Failed), ui.USD(u.Today.Cost))}},
		{Name: "Total", Value: ui.Text{Text: ui.Sayf("%s, %s", ui.Requests(u.Total.Requests), ui.USD(u.Total.Cost))}}}
	credit := creditForm(a.ID, rand.Text())
	credit.Field("usd").Value, credit.Field("note").Value = v.Prefill("usd"), v.Prefill("note")
	p.Credit, p.Change = cmp.Or(forms.credit, &credit), cmp.Or(forms.change, new(accountForm(a)))
	p.Prices, p.Note = cmp.Or(forms.prices, new(pricesForm(a))), cmp.Or(forms.note, new(noteForm(a)))
	if a.Email, err = account.SignInOfTx(tx, a); err != nil { // for the welcome text
		return err
	}
	p.Welcome, p.PublicURLWarning = new(c.welcomeText(a, nil, "", nil)), c.publicURLWarning()
	return nil
}

func deliveriesTable(list []webhook.Delivery) ui.DataTable {
	t := show.Deliveries(list)
	t.Columns = append(t.Columns, ui.Column{Title: "Address"}, ui.Column{Title: "Change"})
	for i, d := range list {
		t.Rows[i].Cells = append(t.Rows[i].Cells, ui.Text{Text: ui.Data(d.URL), Mono: true},
			ui.Button{Action: page.Base + "/operator/deliveries/" + d.ID + "/resend", Label: "Resend", About: ui.Data(d.Event)})
	}
	return t
}

func (c *console) resendDelivery(v *page.Visit) (page.Responder, error) {
	d, err := operator.Resend(v.Context(), c.DB, c.Webhooks, show.Actor(v), v.PathID())
	return page.Redirect(page.Base + "/operator/accounts/" + d.Account + "?view=webhook"), err
}

// createKey creates a key for a customer. The response shows the key's secret once, by itself and in the
// welcome text.
func (c *console) createKey(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := accountKeyForm(a.ID, "")
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	once, err := v.Once(&form, "key "+a.ID)
	if err != nil {
		return nil, err
	}
	var secret string
	if err := v.Update(func(tx *store.Tx) error {
		_, repeated, err := page.OnceTx(tx, once, func() (id string, err error) {
			k, newSecret, err := operator.CreateKeyTx(tx, show.Actor(v), a.ID, account.KeySettings{Name: form.Field("name").Value})
			secret = newSecret
			return k.ID, err
		})
		if repeated {
			secret = ""
		}
		if err == nil {
			a.Email, err = account.SignInOfTx(tx, a)
		}
		return err
	}); err != nil {
		return nil, err
	}
	return c.showCredentials("Key created", customer{account: a, secret: secret}), nil
}
