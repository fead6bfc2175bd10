package show

import (
	"tollgate/internal/account"
	"tollgate/internal/console/page"
	"tollgate/internal/console/part"
)

// NewUserFields ask for a new user of an account.
func NewUserFields() []part.FormField {
	return []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Prefix: "new-", Required: true},
		{Name: "password", Label: "First password", Kind: "password", Complete: "new-password", Prefix: "new-", Required: true,
			Hint: "At least 8 characters. Hand it over yourself; nothing is mailed."},
	}
}

// NewUser is what NewUserFields were filled in with. Errors are those of ParseEmail
// and Hash.
func NewUser(v *page.Visit, form *part.Inputs, passwords *account.Passwords) (account.SignIn, error) {
	email, err := account.ParseEmail(form.Field("email").Value)
	if err != nil {
		return account.SignIn{}, err
	}
	hash, err := passwords.Hash(v.Context(), form.Field("password").Value)
	return account.SignIn{Email: email, PasswordHash: hash}, err
}

// Factor says whether a user's sign-ins ask for a second factor.
func Factor(u account.User) part.Badge {
	if u.FactorMS != 0 {
		return part.Badge{Tone: part.OK, Word: "on"}
	}
	return part.Badge{Word: "off"}
}
