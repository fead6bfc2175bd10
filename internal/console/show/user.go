package show

import (
	"tollgate/internal/account"
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

// Factor says whether a user's sign-ins ask for a second factor.
func Factor(u account.User) part.Badge {
	if u.FactorMS != 0 {
		return part.Badge{Tone: part.OK, Word: "on"}
	}
	return part.Badge{Word: "off"}
}
