package operatorpages

import (
	"crypto/rand"
	"errors"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/show"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/money"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// customer is a new account with its first user, key and credit.
type customer struct {
	opening account.NewAccount
	invite  bool // send a sign-in link to the contact address
	key     bool // create a key
	limits  account.KeySettings
	credit  operator.Credit // zero for no credit

	account account.Account       // set by createTx
	link    *operator.ConsoleLink // nil if invite is false
	secret  string                // the value of the key; empty if key is false
}

func newAccountForm(once string) ui.PostForm {
	return ui.PostForm{Action: page.Base + "/operator/accounts/new", Submit: "Create account", Cancel: page.Base + "/operator/accounts",
		Fields: []ui.FormField{
			{Name: "name", Label: "Name", Required: true, Hint: "The customer's name, for example Acme."},
			{Name: "email", Label: "Email", Kind: "email", Hint: "For contact and for signing in to the console."},
			{Name: "invite", Label: "Invite this address to sign in", Kind: ui.Check, Checked: true,
				Hint: "You get a link to send to the customer. It sets a password, works once, and expires after 7 days."},
			{Name: "password", Label: "First password", Kind: "password", Complete: "new-password",
				Hint: "Replaces the link. At least 8 characters. Tollgate sends no mail, so pass it on yourself."},
			{Name: "key", Label: "Also create a key", Kind: ui.Check, Checked: true,
				Hint: "The key is part of the text to send."},
			{Name: "daily_budget_usd", Label: "Daily budget of the key", Before: "$", Numeric: true,
				Hint: "Per UTC day. Leave empty for no limit. More limits are on the key's page."},
			{Name: "total_limit_usd", Label: "Total limit of the key", Before: "$", Numeric: true,
				Hint: "For the life of the key. Leave empty for no limit."},
			{Name: "usd", Label: "First credit", Before: "$", Numeric: true,
				Hint: "The amount paid in advance. Leave empty to credit the account later."},
			{Name: "note", Label: "Note for the credit", Hint: "For example, invoice 1043. Shown to the account's users."},
			referenceField(), paidField(),
			{Name: "overdraft_floor_usd", Label: "Floor", Before: "$", Numeric: true, Value: "0",
				Hint: "The lowest allowed balance, zero or negative: -5 allows 5 dollars of debt."},
			{Name: "price_factor", Label: "Price factor", Before: "×", Numeric: true, Value: money.One.String(),
				Hint: "Multiplies the catalog's prices: 0.9 gives 10 % off."},
			testField(false),
			{Name: "once", Kind: ui.Hidden, Value: once},
		}}
}

func (c *console) newAccount(*page.Visit) (page.Responder, error) {
	return page.FormPage("Create an account", newAccountForm(rand.Text())), nil
}

// createAccount opens an account and shows its link and key once, with the text to send. A repeated
// form redirects to the account.
func (c *console) createAccount(v *page.Visit) (page.Responder, error) {
	form := newAccountForm("")
	return v.Submit(&form, func() (page.Responder, error) {
		input, err := c.readCustomer(v, &form)
		if err != nil {
			return nil, err
		}
		once, err := v.Once(&form, "account")
		if err != nil {
			return nil, err
		}
		created := input
		if err := v.Update(func(tx *store.Tx) (err error) {
			created = input // clear the result of a rolled-back attempt
			created.account.ID, _, err = page.OnceTx(tx, once, func() (string, error) {
				err := c.createTx(tx, show.Actor(v), &created)
				return created.account.ID, err
			})
			return err
		}); err != nil {
			return nil, err
		}
		if created.link == nil && created.secret == "" { // nothing to show, or the form was sent before
			return page.To("/operator/accounts/"+created.account.ID, "created"), nil
		}
		return c.showCredentials("Account created", created), nil
	}, func() (page.FullPage, error) { return page.FormPage("Create an account", form), nil })
}

// readCustomer reads a customer from the form. It returns all errors joined.
func (c *console) readCustomer(v *page.Visit, form *ui.PostForm) (n customer, err error) {
	n.opening = account.NewAccount{Name: form.Field("name").Value, Email: form.Field("email").Value,
		Test: form.Field("test").Checked}
	floor, floorErr := dollars(form, "overdraft_floor_usd")
	if floor != nil {
		n.opening.Floor = *floor
	}
	var creditErr, passwordErr error
	n.credit, creditErr = firstCredit(form)
	factor, factorErr := factorOf(form)
	if factorErr == nil {
		n.opening.Factor = &factor
	}
	password := form.Field("password").Value
	if password != "" {
		passwordErr = account.CheckPassword(password)
	}
	if err := errors.Join(n.opening.Check(), passwordErr, readLimits(form, &n.limits), creditErr, floorErr, factorErr); err != nil {
		return n, err // do not hash the password, which is expensive
	}
	n.key = form.Field("key").Checked
	n.invite = form.Field("invite").Checked && n.opening.Email != ""
	if password != "" {
		n.invite = false
		n.opening.PasswordHash, err = c.Passwords.Hash(v.Context(), password)
	}
	return n, err
}

// readLimits reads the limits of the first key.
func readLimits(form *ui.PostForm, s *account.KeySettings) error {
	var dailyErr, totalErr error
	s.DailyBudget, dailyErr = dollars(form, "daily_budget_usd")
	s.TotalLimit, totalErr = dollars(form, "total_limit_usd")
	return errors.Join(dailyErr, totalErr, s.Check())
}

func firstCredit(form *ui.PostForm) (credit operator.Credit, err error) {
	usd, err := dollars(form, "usd")
	if err == nil && (usd == nil || *usd == 0) {
		return credit, nil
	}
	credit.Note, credit.Reference = form.Field("note").Value, form.Field("reference").Value
	credit.Paid = form.Field("paid").Checked
	switch {
	case err != nil:
	case *usd < 0:
		err = fault.At(fault.InvalidRequest, "usd", "usd must be an amount above 0: there is nothing to take back yet.")
	default:
		credit.USD = *usd
	}
	return credit, errors.Join(err, credit.Check()) // err comes first, because it explains an invalid amount better than Check
}

func (c *console) createTx(tx *store.Tx, actor operator.Actor, n *customer) (err error) {
	if n.account, err = operator.CreateAccountTx(tx, actor, n.opening); err != nil {
		return err
	}
	if n.invite {
		link, err := operator.InviteTx(tx, actor, c.Mails, c.PublicURL, n.account.ID, account.SignIn{Email: n.account.Email})
		if err != nil {
			return err
		}
		n.link = &link
	}
	if n.key {
		if _, n.secret, err = operator.CreateKeyTx(tx, actor, n.account.ID, n.limits); err != nil {
			return err
		}
	}
	if n.credit.USD > 0 {
		_, err = operator.CreditTx(tx, actor, n.account.ID, n.credit)
	}
	return err
}
