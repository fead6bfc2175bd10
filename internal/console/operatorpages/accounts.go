package operatorpages

import (
	"errors"
	"net/url"
	"slices"
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

// creditPage previews a credit.
type creditPage struct {
	Name  string
	Facts ui.Facts
	Form  ui.PostForm
}

// searchFilter returns a search form filled in with q.
func searchFilter(path, q string) ui.Filters {
	f := ui.Filters{Action: page.Base + path, Fields: []ui.FormField{{Name: "q", Label: "Name, email or id", Value: q}}}
	if q != "" {
		f.Clear = page.Base + path
	}
	return f
}

func (c *console) listAccounts(v *page.Visit) (page.Responder, error) {
	q := strings.TrimSpace(v.Query("q"))
	content := page.List{Title: "Accounts", All: "All accounts", Path: "/operator/accounts", Filters: searchFilter("/operator/accounts", q),
		New: page.CreateLink("/operator/accounts/new", "Create an account")}
	if err := v.View(func(tx *store.Tx) (err error) {
		var list []account.Account
		more := false
		switch {
		case strings.HasPrefix(q, "acct_"):
			list, err = oneOrNone(account.GetTx(tx, q))
		case q != "":
			list, more, err = account.SearchTx(tx, q, v.Query("after"), page.Rows)
		default:
			list, more, err = account.ListTx(tx, v.Query("after"), page.Rows)
		}
		content.Table = accountsTable(list)
		content.Pager = v.Pager(content.Path, more, page.Last(list, func(a account.Account) string { return a.ID }))
		return err
	}); err != nil {
		return nil, err
	}
	if len(content.Table.Rows) == 0 && q != "" {
		content.Empty = page.NoneMatch(content.Path, "All accounts")
		content.Empty.Title = "No account has this text in its name, email or id"
	}
	return content.Page(false, ui.EmptyState{Title: "No accounts yet", Link: content.New,
		Text: "An account is a customer, with a balance, keys and users."}), nil
}

// oneOrNone returns a list with the object, or an empty list if err is a 404.
func oneOrNone[T any](found T, err error) ([]T, error) {
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil
		}
		return nil, err
	}
	return []T{found}, nil
}

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

// dollars parses a field of a form as an amount of US dollars. It returns nil if the field is empty.
func dollars(f *ui.PostForm, name string) (*money.Amount, error) {
	text := strings.TrimSpace(strings.ReplaceAll(f.Field(name).Value, "$", ""))
	if text == "" {
		return nil, nil
	}
	value, err := money.ParseTyped(text)
	if err != nil {
		return nil, fault.At(fault.InvalidRequest, name, "%s must be an amount of US dollars, for example 50 or -2.5.", f.Field(name).Label)
	}
	return &value, nil
}

func creditForm(id, once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/" + id + "/credit", Submit: "Preview the credit", Fields: []ui.FormField{
		{Name: "usd", Label: "Credit", Before: "$", Numeric: true, Required: true, Hint: "A negative amount takes credit back."},
		{Name: "note", Label: "Note", Hint: "For example invoice 1043. The account's users see it."},
		referenceField(), paidField(),
		{Name: "once", Kind: ui.Hidden, Value: once},
		{Name: "sure", Kind: ui.Hidden},
		{Name: "secret", Kind: ui.Hidden},
	}}
}

// paidField returns the check box for a credit that the customer has paid.
func paidField() ui.FormField {
	return ui.FormField{Name: "paid", Label: "The customer has paid it", Kind: ui.Check,
		Hint: "Otherwise the statements show the credit as due until you mark it as paid."}
}

// referenceField returns the optional field for the id of a payment.
func referenceField() ui.FormField {
	return ui.FormField{Name: "reference", Label: "Reference",
		Hint: "The payment's id, if there is one. A payment is credited only once, even if you enter it again."}
}

// creditAccount moves money in two steps. The first form previews the new balance, and the second form moves
// the money. A repeated form moves no money. A form with the reference of an earlier credit moves no money
// either.
func (c *console) creditAccount(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := creditForm(a.ID, "")
	var credit operator.Credit
	return v.Submit(&form, func() (page.Responder, error) {
		usd, err := dollars(&form, "usd")
		credit.Note, credit.Reference = form.Field("note").Value, form.Field("reference").Value
		credit.Paid = form.Field("paid").Checked
		if usd != nil {
			credit.USD = *usd
		}
		if err := errors.Join(err, credit.Check()); err != nil {
			return nil, err
		}
		once, err := v.Once(&form, "credit "+a.ID)
		if err != nil {
			return nil, err
		}
		if form.Field("sure").Value == "" {
			return c.previewCredit(v, a, credit, form), nil
		}
		if err := c.confirmTakeBack(v, credit, form.Field("secret").Value); err != nil {
			return nil, err
		}
		var result operator.CreditResult
		if err := v.Update(func(tx *store.Tx) error {
			result = operator.CreditResult{} // clear the result of a rolled-back attempt
			_, _, err := page.OnceTx(tx, once, func() (_ string, err error) {
				result, err = operator.CreditTx(tx, show.Actor(v), a.ID, credit)
				return a.ID, err
			})
			return err
		}); err != nil {
			return nil, err
		}
		if result.Repeated {
			return page.To("/operator/accounts/"+a.ID, "repeated"), nil
		}
		if result.Low {
			c.Webhooks.Wake()
		}
		return page.To("/operator/accounts/"+a.ID, "credited"), nil
	}, func() (page.FullPage, error) {
		form.Field("secret").Value = ""
		if form.Field("sure").Value != "" {
			return c.previewCredit(v, a, credit, form), nil
		}
		return c.accountWith(v, a, accountForms{credit: &form})
	})
}

// confirmTakeBack confirms the operator's identity if credit takes money back.
func (c *console) confirmTakeBack(v *page.Visit, credit operator.Credit, secret string) error {
	if credit.USD > 0 {
		return nil
	}
	return c.confirmIdentity(v, secret, "nothing was taken back")
}

// confirmIdentity confirms the operator's identity with a password, a code or the operator's token. consequence
// completes the error message, such as "nothing was refunded".
func (c *console) confirmIdentity(v *page.Visit, secret, consequence string) error {
	var err error
	switch u := v.Session.User; {
	case u.ID == "":
		err = c.SignIns.Token(v.Context(), c.AdminToken.Is(secret), v.Address())
	case u.NoPassword && u.FactorMS == 0:
		return fault.At(fault.InvalidRequest, "secret", "You have neither a password nor a second factor, so %s. Set one up in your own "+
			"settings at %s/settings.", consequence, page.Base)
	case u.NoPassword:
		err = c.SignIns.Code(v.Context(), u.ID, secret, v.Address())
	default:
		err = c.SignIns.Confirm(v.Context(), u, secret, v.Address(), v.Marks()...)
	}
	if errors.Is(err, account.ErrWrongSignIn) {
		return fault.At(fault.InvalidRequest, "secret", "The password, token or code is wrong, so %s.", consequence)
	}
	return err
}

// previewCredit previews a credit and asks for a confirmation.
func (c *console) previewCredit(v *page.Visit, a account.Account, credit operator.Credit, form ui.PostForm) page.FullPage {
	for _, name := range []string{"usd", "note", "reference", "paid"} {
		form.Field(name).Kind = ui.Hidden
	}
	paid := "no"
	if credit.Paid {
		paid, form.Field("paid").Value = "yes", "yes"
	} else { // browsers send only checked boxes
		form.Fields = slices.DeleteFunc(form.Fields, func(f ui.FormField) bool { return f.Name == "paid" })
	}
	form.Field("sure").Value = "yes"
	form.Cancel = page.Base + "/operator/accounts/" + a.ID
	verb, submit, title := ui.Words("Credit"), ui.Words("Credit %s"), ui.Words("Credit for %s")
	amount := credit.USD
	if amount < 0 {
		verb, submit, title = "Take back", "Take back %s", "Take back from %s"
		amount, form.Danger = -amount, true
		*form.Field("secret") = secretField(v, "Required to take money back.")
	}
	form.Submit = ui.Sayf(submit, ui.USD(amount))
	content := creditPage{Name: a.Name, Form: form, Facts: ui.Facts{{Name: "Account", Value: a.Name},
		{Name: "Balance now", Value: ui.Money{Amount: a.Money.Balance}},
		{Name: verb, Value: ui.Money{Amount: amount}},
		{Name: "New balance", Value: ui.Money{Amount: a.Money.Balance + credit.USD}}, {Name: "Note", Value: ui.OrDash(credit.Note)},
		{Name: "Reference", Value: ui.OrDash(credit.Reference)}, {Name: "Paid", Value: paid}}}
	return page.FullPage{Name: "credit", Title: ui.Sayf(title, a.Name), Main: content}
}

func (c *console) changeAccount(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := accountForm(a)
	return v.Submit(&form, func() (page.Responder, error) {
		name := form.Field("name").Value
		floor, err := dollars(&form, "overdraft_floor_usd")
		if floor == nil {
			floor = new(money.Amount)
		}
		patch := account.Patch{Name: &name, Floor: floor}
		if email := form.Field("email"); email.Checked {
			patch.Email = &email.Value
		}
		if test := form.Field("test").Checked; test != a.Test {
			patch.Test = &test
		}
		if err := errors.Join(err, patch.Check(a)); err != nil {
			return nil, err
		}
		return c.patchAccount(v, patch, "changed")
	}, func() (page.FullPage, error) { return c.accountWith(v, a, accountForms{change: &form}) })
}

func (c *console) saveNote(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := noteForm(a)
	return v.Submit(&form, func() (page.Responder, error) {
		return c.patchAccount(v, account.Patch{Note: &form.Field("note").Value}, "changed")
	}, func() (page.FullPage, error) { return c.accountWith(v, a, accountForms{note: &form}) })
}

// patchAccount changes the account named in the path. notice selects the notice on the account's
// page.
func (c *console) patchAccount(v *page.Visit, p account.Patch, notice string) (page.Responder, error) {
	// Forget the keys even after an error, because the transaction may have been committed.
	defer c.Keys.ForgetAccount(v.PathID())
	return v.Done("/operator/accounts/"+url.PathEscape(v.PathID()), notice, func(tx *store.Tx) error {
		_, err := operator.ChangeAccountTx(tx, show.Actor(v), v.PathID(), p)
		return err
	})
}

func (c *console) disableAccount(v *page.Visit) (page.Responder, error) {
	return c.patchAccount(v, account.Patch{Disabled: new(true)}, "disabled")
}

func (c *console) enableAccount(v *page.Visit) (page.Responder, error) {
	return c.patchAccount(v, account.Patch{Disabled: new(false)}, "enabled")
}

func accountOf(v *page.Visit) (account.Account, error) {
	return page.Read(v, func(tx *store.Tx) (account.Account, error) { return account.GetTx(tx, v.PathID()) })
}

func (c *console) savePrices(v *page.Visit) (page.Responder, error) {
	a, err := accountOf(v)
	if err != nil {
		return nil, err
	}
	form := pricesForm(a)
	return v.Submit(&form, func() (page.Responder, error) {
		patch, err := pricesOf(&form)
		if err != nil {
			return nil, err
		}
		return c.patchAccount(v, patch, "priced")
	}, func() (page.FullPage, error) { return c.accountWith(v, a, accountForms{prices: &form}) })
}

// factorOf reads the price factor of a form. An empty field means 1.
func factorOf(form *ui.PostForm) (money.Factor, error) {
	text := strings.TrimSpace(form.Field("price_factor").Value)
	if text == "" {
		return money.One, nil
	}
	factor, err := money.ParseFactor(text)
	if err != nil {
		return 0, fault.At(fault.InvalidRequest, "price_factor", "price_factor %s.", err)
	}
	return factor, nil
}

// pricesOf reads the account's price factor, and the factors of models, one per line. An empty price factor
// means 1.
func pricesOf(form *ui.PostForm) (p account.Patch, err error) {
	factor, factorErr := factorOf(form)
	models := map[string]money.Factor{}
	for line := range strings.Lines(form.Field("prices").Value) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		id, modelFactor := words[0], money.Factor(0)
		if len(words) == 2 {
			modelFactor, err = money.ParseFactor(words[1])
		}
		if _, repeated := models[id]; repeated || len(words) != 2 || err != nil {
			return p, errors.Join(factorErr, fault.At(fault.InvalidRequest, "prices",
				"Write one model and its factor on each line, and each model only once. This line is wrong: %q.", strings.TrimSpace(line)))
		}
		models[id] = modelFactor
	}
	return account.Patch{Factor: &factor, Prices: &models}, factorErr
}
