package operator

import (
	"tollgate/internal/account"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// IdentityNews describes a change of a user's identities for the log and for the mail to the user.
type IdentityNews struct {
	By       Actor
	Mails    *mail.Mailer
	Base     string // base address of the console
	Cause    string // id of the request
	Locale   mail.Locale
	Provider string // title of the provider
}

// AddIdentityTx lets a user sign in with an identity, logs it and tells the user by mail. Errors as for
// account.AddIdentityTx.
func AddIdentityTx(tx *store.Tx, user string, i account.LinkedIdentity, n IdentityNews) error {
	added, err := account.AddIdentityTx(tx, user, i)
	if err != nil {
		return err
	}
	return tellIdentityTx(tx, UserIdentityAdd, mail.IdentityAdded, added, n)
}

// AcceptInvitationTx accepts an invitation with an identity, as AddIdentityTx does. Errors as for
// account.AcceptInvitationTx.
func AcceptInvitationTx(tx *store.Tx, linkHash string, i account.LinkedIdentity, n IdentityNews) (account.User, error) {
	u, added, err := account.AcceptInvitationTx(tx, linkHash, i)
	if err != nil {
		return u, err
	}
	n.By.Name = u.Email
	return u, tellIdentityTx(tx, UserIdentityAdd, mail.IdentityAdded, added, n)
}

// RemoveIdentityTx takes an identity from a user, logs it and tells the user by mail. It sets n.Provider
// with title, a function that returns the title of an issuer. Errors as for account.RemoveIdentityTx.
func RemoveIdentityTx(tx *store.Tx, user, id string, issuers []string, title func(issuer string) string, n IdentityNews) error {
	removed, err := account.RemoveIdentityTx(tx, user, id, issuers)
	if err != nil {
		return err
	}
	n.Provider = title(removed.Issuer)
	return tellIdentityTx(tx, UserIdentityRemove, mail.IdentityRemoved, removed, n)
}

// DropIdentityTx is RemoveIdentityTx for an operator. It also removes the user's only way to sign in, and
// ends the user's sessions. Only an owner can take the identity of a user with a role.
func DropIdentityTx(tx *store.Tx, id string, title func(issuer string) string, n IdentityNews) (account.User, error) {
	dropped, err := account.DropIdentityTx(tx, id)
	if err != nil {
		return account.User{}, err
	}
	u, err := account.GetUserTx(tx, dropped.User)
	if err != nil {
		return u, err
	}
	if err := checkRole(n.By, u.Role); err != nil {
		return u, err
	}
	n.Provider = title(dropped.Issuer)
	return u, tellIdentityTx(tx, UserIdentityRemove, mail.IdentityRemoved, dropped, n)
}

// tellIdentityTx writes the log row and the mail of a change.
func tellIdentityTx(tx *store.Tx, act string, kind mail.LetterKind, i account.LinkedIdentity, n IdentityNews) error {
	u, err := account.GetUserTx(tx, i.User)
	if err != nil {
		return err
	}
	now, err := tx.NowMS()
	if err != nil {
		return err
	}
	details := Details{"issuer": i.Issuer, "subject": i.Subject, "address": i.Email}
	row := LogRow{Act: act, Object: u.ID, Account: u.Account, After: details}
	if act == UserIdentityRemove {
		row.Before, row.After = details, nil
	}
	if err := writeLogTx(tx, n.By, row); err != nil {
		return err
	}
	address := n.By.Address
	if n.By.Role != "" {
		address = "an operator" // the operator's address is not for customers
	}
	return account.MailUserTx(tx, n.Mails, u, mail.Letter{Kind: kind, Cause: n.Cause, Locale: n.Locale, Link: n.Base + "/console/settings",
		Values: map[string]string{"provider": n.Provider, "time": mail.Time(now), "address": address}})
}

// ClaimRoleTx gives a user the role that a provider claims at a sign-in with an identity. Without a claim,
// it takes away a role that an earlier claim gave. The last owner keeps the role; kept then is true.
func ClaimRoleTx(
	tx *store.Tx, by Actor, u account.User, i account.LinkedIdentity, claimed account.OperatorRole,
) (changed account.User, kept bool, err error) {
	if u.Role == claimed || claimed == "" && u.Role != i.Role {
		return u, false, nil
	}
	if u.Role == account.Owner && !u.Disabled {
		if isLast, err := account.IsLastOwnerTx(tx, u.ID); err != nil || isLast {
			return u, isLast, err
		}
	}
	if changed, err = account.ChangeUserTx(tx, u.ID, account.UserChange{Role: &claimed}); err != nil {
		return u, false, err
	}
	return changed, false, writeLogTx(tx, by, LogRow{Act: UserChange, Object: u.ID, Account: u.Account,
		Before: userDetails(u), After: userDetails(changed)})
}
