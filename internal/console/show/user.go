package show

import "tollgate/internal/console/part"

// NewUserFields ask for a new user of an account.
func NewUserFields() []part.FormField {
	return []part.FormField{
		{Name: "email", Label: "Email", Kind: "email", Prefix: "new-", Required: true},
		{Name: "password", Label: "First password", Kind: "password", Complete: "new-password", Prefix: "new-", Required: true,
			Hint: "At least 8 characters. Hand it over yourself; nothing is mailed."},
	}
}
