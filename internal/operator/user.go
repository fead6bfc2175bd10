package operator

import (
	"tollgate/internal/account"
	"tollgate/internal/store"
)

func userFacts(u account.User) Details {
	return Details{"email": u.Email, "disabled": u.Disabled, "operator": u.Operator}
}

// CreateUserTx adds a console sign-in to an account.
func CreateUserTx(tx *store.Tx, by Actor, id string, in account.SignIn) (account.User, error) {
	u, err := account.CreateUserTx(tx, id, in)
	if err != nil {
		return u, err
	}
	return u, NoteTx(tx, by, LogRow{Act: UserCreate, Object: u.ID, Account: u.Account, After: userFacts(u)})
}

// LinkPath is, behind a base address, where the console takes the token of a link, which stands behind it. A
// browser sends nothing of what follows the #: no log of a server or a proxy has it, no
// Referer, and no program that looks at a link before its reader does can use it up.
const LinkPath = "/console/link#"

// SentLink is a link for a user as it is sent, once.
type SentLink struct {
	account.PasswordLink
	Address string
}

// LinkAt is a link at a base address, with its token.
func LinkAt(base string, l account.PasswordLink, token string) SentLink {
	return SentLink{l, base + LinkPath + token}
}

// MakeLinkTx makes a link for a user at a base address, with which he sets his password;
// it is known to nobody afterwards, and the one before is void.
func MakeLinkTx(tx *store.Tx, by Actor, base, user string) (SentLink, error) {
	l, token, err := account.MakeLinkTx(tx, user)
	if err != nil {
		return SentLink{}, err
	}
	return LinkAt(base, l, token), NoteTx(tx, by, LogRow{Act: UserLink, Object: user, Account: l.User.Account,
		After: Details{"link": string(l.Kind), "expires": l.ExpiresMS / 1000}})
}

// InviteTx adds a console sign-in without a password to an account, and makes a link for
// it.
func InviteTx(tx *store.Tx, by Actor, base, id string, in account.SignIn) (SentLink, error) {
	u, err := CreateUserTx(tx, by, id, in)
	if err != nil {
		return SentLink{}, err
	}
	return MakeLinkTx(tx, by, base, u.ID)
}

// ChangeUserTx changes a console sign-in. Whom it disables no colleague enables.
func ChangeUserTx(tx *store.Tx, by Actor, user string, c account.UserChange) (account.User, error) {
	was, err := account.KeepUserTx(tx, user)
	if err != nil {
		return was, err
	}
	c.Barring = true
	u, err := account.ChangeUserTx(tx, user, c)
	if err != nil {
		return u, err
	}
	before, after := userFacts(was), userFacts(u)
	if c.PasswordHash != nil {
		after["password"] = "new"
	}
	if was.Disabled && u.Barred && !was.Barred { // a colleague had disabled it
		after["disabled_by"] = "operator"
	}
	if was.FactorMS != u.FactorMS { // an operator can turn it off alone
		before["second_factor"], after["second_factor"] = "on", "off"
	}
	return u, NoteTx(tx, by, LogRow{Act: UserChange, Object: user, Account: u.Account, Before: before, After: after})
}

// DeleteUserTx removes a console sign-in for good.
func DeleteUserTx(tx *store.Tx, by Actor, user string) error {
	before, err := account.KeepUserTx(tx, user)
	if err != nil {
		return err
	}
	if err := account.DeleteUserTx(tx, user); err != nil {
		return err
	}
	return NoteTx(tx, by, LogRow{Act: UserDelete, Object: user, Account: before.Account, Before: userFacts(before)})
}
