package operatorpages

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// accountsPage lists the accounts.
type accountsPage struct {
	Filters ui.Filters
	Table   ui.DataTable
	Empty   *ui.EmptyState
	Pager   ui.Pager
}

// creditPage previews a credit.
type creditPage struct {
	Name  string
	Facts ui.Facts
	Form  ui.PostForm
}

// searchFilter looks for accounts, and on one page for anything.
func searchFilter(path, q string) ui.Filters {
	f := ui.Filters{Action: page.Base + path, Fields: []ui.FormField{{Name: "q", Label: "Name, email or id", Value: q}}}
	if q != "" {
		f.Clear = page.Base + path
	}
	return f
}

func (c *console) listAccounts(v *page.Visit) (page.Responder, error) {
	q := strings.TrimSpace(v.Query("q"))
	shown := accountsPage{Filters: searchFilter("/operator/accounts", q)}
	if err := v.View(func(tx *store.Tx) (err error) {
		var list []account.Account
		more := false
		switch {
		case strings.HasPrefix(q, "acct_"):
			list, err = oneAccountTx(tx, q)
		case q != "":
			list, more, err = account.SearchTx(tx, q, v.Query("after"), page.Rows)
		default:
			list, more, err = account.ListTx(tx, v.Query("after"), page.Rows)
		}
		if err != nil {
			return err
		}
		shown.Table = accountsTable(list)
		if len(list) > 0 {
			shown.Pager = v.Pager("/operator/accounts", more, list[len(list)-1].ID)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(shown.Table.Rows) == 0 {
		shown.Empty = &ui.EmptyState{Title: "No accounts yet", Text: "An account is a customer, with a balance, keys and users.",
			Link: &ui.Link{Href: page.Base + "/operator/accounts/new", Text: "Create an account", Icon: "plus", Button: true, Main: true}}
		if q != "" {
			shown.Empty = &ui.EmptyState{Title: "No account has this text in its name, email or id",
				Link: &ui.Link{Href: page.Base + "/operator/accounts", Text: "All accounts", Button: true}}
		}
	}
	return page.FullPage{Name: "accounts", Title: "Accounts", Main: shown}, nil
}

// oneAccountTx returns a list with the account of an id, or an empty list if the id is unknown.
func oneAccountTx(tx *store.Tx, id string) ([]account.Account, error) {
	a, err := account.GetTx(tx, id)
	if isNotFound(err) {
		return nil, nil
	}
	return []account.Account{a}, err
}

func isNotFound(err error) bool { return err != nil && fault.Of(err).Code == fault.NotFound }

func accountsTable(list []account.Account) ui.DataTable {
	t := ui.DataTable{Caption: "Accounts", Columns: []ui.Column{{Title: "Name"}, {Title: "State"}, {Title: "Email", Fold: true},
		{Title: "Balance", Right: true}, {Title: "On hold", Right: true, Fold: true}, {Title: "Floor", Right: true, Fold: true},
		{Title: "Since", Fold: true}}}
	for _, a := range list {
		t.Rows = append(t.Rows, ui.DataRow{Href: page.Base + "/operator/accounts/" + a.ID, Cells: []any{a.Name, accountBadge(a), a.Email,
			ui.Money{Amount: a.Money.Balance}, ui.Money{Amount: a.Money.Held}, ui.Money{Amount: a.Money.Floor},
			ui.Moment{MS: a.CreatedMS}}})
	}
	return t
}

func accountBadge(a account.Account) ui.Badge {
	switch {
	case a.Money.Disabled:
		return ui.Badge{Tone: ui.Bad, Label: "disabled"}
	case a.Money.Balance-a.Money.Held <= a.Money.Floor:
		return ui.Badge{Tone: ui.Warn, Label: "used up"}
	}
	return ui.Badge{Tone: ui.OK, Label: "active"}
}

// dollars reads an amount of a form's field; empty is nil.
func dollars(f *ui.PostForm, name string) (*money.Amount, error) {
	text := strings.TrimSpace(strings.ReplaceAll(f.Field(name).Value, "$", ""))
	if text == "" {
		return nil, nil
	}
	value, err := money.ParseTyped(text)
	if err != nil {
		return nil, fault.At(fault.InvalidRequest, name, "%s is an amount of US dollars, for example 50 or -2.5.", f.Field(name).Label)
	}
	return &value, nil
}

func creditForm(id, once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + id + "/credit", Submit: "Preview the credit", Fields: []ui.FormField{
		{Name: "usd", Label: "Credit", Before: "$", Numeric: true, Required: true, Hint: "A negative amount takes credit back."},
		{Name: "note", Label: "Note", Hint: "For example invoice 1043. The account's users see it."},
		{Name: "once", Kind: ui.Hidden, Value: once},
		{Name: "sure", Kind: ui.Hidden},
		{Name: "secret", Kind: ui.Hidden},
	}}
}

// creditAccount moves money in two steps: the first previews the balance, the second moves the
// money. A repeated form moves the money only once.
func (c *console) creditAccount(v *page.Visit) (page.Responder, error) {
	form := creditForm(v.PathID(), "")
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	var given operator.Credit
	var a account.Account
	low := false
	credit := func() error {
		usd, err := dollars(&form, "usd")
		given.Note = form.Field("note").Value
		if usd != nil {
			given.USD = *usd
		}
		if err := errors.Join(err, given.Check()); err != nil {
			return err
		}
		once, err := v.Once(&form, "credit "+v.PathID())
		if err != nil {
			return err
		}
		if form.Field("sure").Value == "" {
			return nil
		}
		if err := c.confirmTakeBack(v, given, form.Field("secret").Value); err != nil {
			return err
		}
		return v.Update(func(tx *store.Tx) (err error) {
			_, _, err = page.OnceTx(tx, once, func() (string, error) {
				_, low, err = operator.CreditTx(tx, show.Actor(v), v.PathID(), given)
				return v.PathID(), err
			})
			return err
		})
	}
	if err := v.View(func(tx *store.Tx) (err error) { a, err = account.GetTx(tx, v.PathID()); return err }); err != nil {
		return nil, err
	}
	if err := credit(); err != nil {
		if err := page.AddErrors(&form, err); err != nil {
			return nil, err
		}
		form.Field("secret").Value = ""
		if form.Field("sure").Value != "" {
			return c.previewCredit(v, a, given, form, http.StatusUnprocessableEntity), nil
		}
		return c.accountWith(v, a, accountForms{credit: &form}, http.StatusUnprocessableEntity)
	}
	if form.Field("sure").Value == "" {
		return c.previewCredit(v, a, given, form, 0), nil
	}
	if low {
		c.Webhooks.Wake()
	}
	return page.To("/operator/accounts/"+a.ID, "credited"), nil
}

// confirmTakeBack confirms the operator's identity before money is taken back.
func (c *console) confirmTakeBack(v *page.Visit, given operator.Credit, secret string) error {
	if given.USD > 0 {
		return nil
	}
	return c.confirmIdentity(v, secret, "nothing was taken back")
}

// confirmIdentity confirms the operator's identity. not describes the omitted act in the error message.
func (c *console) confirmIdentity(v *page.Visit, secret, not string) error {
	var err error
	if v.Session.User.ID == "" {
		err = c.SignIns.Token(v.Context(), c.AdminToken.Is(secret), v.Address())
	} else {
		err = c.SignIns.Confirm(v.Context(), v.Session.User, secret, v.Address(), v.Marks()...)
	}
	if errors.Is(err, account.ErrWrongSignIn) {
		return fault.At(fault.InvalidRequest, "secret", "That is not right, so %s.", not)
	}
	return err
}

// previewCredit previews a credit and asks for a confirmation.
func (c *console) previewCredit(v *page.Visit, a account.Account, given operator.Credit, form ui.PostForm, status int) page.Responder {
	for _, name := range []string{"usd", "note"} {
		form.Field(name).Kind = ui.Hidden
	}
	form.Field("sure").Value = "yes"
	form.Cancel = page.Base + "/operator/accounts/" + a.ID
	word := "Credit "
	amount := given.USD
	if amount < 0 {
		word, amount, form.Danger = "Take back ", -amount, true
		*form.Field("secret") = secretField(v, "Required to take money back.")
	}
	form.Submit = word + ui.USD(amount)
	shown := creditPage{Name: a.Name, Form: form, Facts: ui.Facts{{Name: "Account", Value: a.Name},
		{Name: "Balance now", Value: ui.Money{Amount: a.Money.Balance}}, {Name: strings.TrimSpace(word), Value: ui.Money{Amount: amount}},
		{Name: "Balance then", Value: ui.Money{Amount: a.Money.Balance + given.USD}}, {Name: "Note", Value: ui.OrDash(given.Note)}}}
	return page.FullPage{Name: "credit", Title: strings.TrimSpace(word) + " " + a.Name, Main: shown, Status: status}
}

// changeAccount edits an account's name, contact address and floor.
func (c *console) changeAccount(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := accountForm(a)
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	change := func() error {
		name := form.Field("name").Value
		floor, err := dollars(&form, "overdraft_floor_usd")
		if floor == nil {
			floor = new(money.Amount)
		}
		patch := account.Patch{Name: &name, Floor: floor}
		if email := form.Field("email"); email.On {
			patch.Email = &email.Value
		}
		if test := form.Field("test").On; test != a.Test {
			patch.Test = &test
		}
		if err := errors.Join(err, patch.Check(a)); err != nil {
			return err
		}
		return c.patchAccount(v, patch)
	}
	if err := change(); err != nil {
		if err := page.AddErrors(&form, err); err != nil {
			return nil, err
		}
		return c.accountWith(v, a, accountForms{change: &form}, http.StatusUnprocessableEntity)
	}
	return page.To("/operator/accounts/"+a.ID, "changed"), nil
}

// saveNote saves the operators' note about an account.
func (c *console) saveNote(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := noteForm(a)
	if err := v.ReadForm(&form); err != nil {
		return nil, err
	}
	if err := c.patchAccount(v, account.Patch{Note: &form.Field("note").Value}); err != nil {
		if err := page.AddErrors(&form, err); err != nil {
			return nil, err
		}
		return c.accountWith(v, a, accountForms{note: &form}, http.StatusUnprocessableEntity)
	}
	return page.To("/operator/accounts/"+a.ID, "changed"), nil
}

func (c *console) patchAccount(v *page.Visit, p account.Patch) error {
	// Also after an error, because the transaction may have been committed.
	defer c.Keys.ForgetAccount(v.PathID())
	return v.Update(func(tx *store.Tx) error {
		_, err := operator.ChangeAccountTx(tx, show.Actor(v), v.PathID(), p)
		return err
	})
}

func (c *console) disableAccount(v *page.Visit) (page.Responder, error) {
	return c.switchAccount(v, true, "disabled")
}
func (c *console) enableAccount(v *page.Visit) (page.Responder, error) {
	return c.switchAccount(v, false, "enabled")
}

func (c *console) switchAccount(v *page.Visit, disabled bool, done string) (page.Responder, error) {
	if err := c.patchAccount(v, account.Patch{Disabled: &disabled}); err != nil {
		return nil, err
	}
	return page.To("/operator/accounts/"+url.PathEscape(v.PathID()), done), nil
}

// accountOf returns the account named in the path.
func accountOf(v *page.Visit) (a account.Account, err error) {
	err = v.View(func(tx *store.Tx) (err error) {
		a, err = account.GetTx(tx, v.PathID())
		return err
	})
	return a, err
}
