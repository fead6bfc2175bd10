package show

import (
	"errors"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/operator"
)

// NewUserFields returns the form fields for a new user of an account.
func NewUserFields() []ui.FormField {
	return []ui.FormField{
		{Name: "email", Label: "Email", Kind: "email", Prefix: "new-", Required: true},
		{Name: "password", Label: "First password", Kind: "password", Complete: "new-password", Prefix: "new-",
			Hint: "At least 8 characters. Leave empty to get a link to send instead."},
	}
}

// NewUser reads the values of NewUserFields from a form. The form may lack the field for the password. A user
// without a password needs a link.
//
// Hashing a password delays sign-ins, so NewUser calls allow after it has checked the form and before it hashes
// the password. If allow is nil, every valid form is accepted. NewUser returns the joined errors of ParseEmail
// and CheckPassword, or the error of allow or of Hash.
func NewUser(v *page.Visit, form *ui.PostForm, passwords *account.Passwords, allow func() error) (account.SignIn, error) {
	email, err := account.ParseEmail(form.Field("email").Value)
	password := ""
	if f := form.Field("password"); f != nil {
		password = f.Value
	}
	if password != "" {
		err = errors.Join(err, account.CheckPassword(password))
	}
	if err == nil && allow != nil {
		err = allow()
	}
	if err != nil || password == "" {
		return account.SignIn{Email: email}, err
	}
	hash, err := passwords.Hash(v.Context(), password)
	return account.SignIn{Email: email, PasswordHash: hash}, err
}

// UserState returns a badge about whether a user can sign in.
func UserState(u account.User) ui.Badge {
	switch {
	case u.Barred:
		return ui.Badge{Label: "disabled by the operator"}
	case u.Disabled:
		return ui.Badge{Label: "disabled"}
	case u.Invited():
		return ui.Badge{Tone: ui.Warn, Label: "invited, no password yet"}
	}
	return ui.Badge{Tone: ui.OK, Label: "can sign in"}
}

// Factor returns the badge for a user's second factor.
func Factor(u account.User) ui.Badge {
	if u.FactorMS != 0 {
		return ui.Badge{Tone: ui.OK, Label: "on"}
	}
	return ui.Badge{Label: "off"}
}

// Actor returns the visitor as the operator of an action.
func Actor(v *page.Visit) operator.Actor {
	return operator.Actor{Way: operator.Console, Name: v.Session.User.Email, Address: v.Address().String(), Role: v.Session.Role()}
}

// ActorName returns the name of an operator for people, or an empty string if it is unknown.
func ActorName(a operator.Actor) ui.Words {
	if a.Name != "" {
		return ui.Data(a.Name)
	}
	return map[operator.Way]ui.Words{operator.Console: "operator's token", operator.Token: "operator API", operator.Shell: "shell"}[a.Way]
}

// StateLabel returns a state in words, such as "circuit open" for circuit_open.
func StateLabel(state string) ui.Words { return ui.Words(strings.ReplaceAll(state, "_", " ")) }
