package operator

import (
	"tollgate/internal/account"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

func userDetails(u account.User) Details {
	return Details{"email": u.Email, "disabled": u.Disabled, "operator": u.Operator}
}

// CreateUserTx adds a sign-in to an account.
func CreateUserTx(tx *store.Tx, by Actor, id string, in account.SignIn) (account.User, error) {
	u, err := account.CreateUserTx(tx, id, in)
	if err != nil {
		return u, err
	}
	return u, writeLogTx(tx, by, LogRow{Act: UserCreate, Object: u.ID, Account: u.Account, After: userDetails(u)})
}

// LinkPath is the console's path of a link; the token follows it. Browsers do not send the part
// after #, so the token reaches no server log, no proxy log, no Referer, and no program that
// previews links.
const LinkPath = "/console/link#"

// ConsoleLink is a link with which a user sets a password. It is shown once.
type ConsoleLink struct {
	account.PasswordLink
	Address string // the URL with the token
}

// LinkAt returns the link for token at a base address.
func LinkAt(base string, l account.PasswordLink, token string) ConsoleLink {
	return ConsoleLink{l, base + LinkPath + token}
}

// MailLinkTx mails a link to its user, if mail is on. locale is the language for a user without a choice.
func MailLinkTx(tx *store.Tx, mails *mail.Mailer, l ConsoleLink, locale mail.Locale) error {
	kind := mail.Invitation
	if l.Kind == account.Reset {
		kind = mail.Reset
	}
	return account.MailUserTx(tx, mails, l.User, mail.Letter{Kind: kind, Cause: id.New("link_"), Locale: locale,
		Link: l.Address, ExpiresMS: l.ExpiresMS, Values: map[string]string{"expires": mail.Time(l.ExpiresMS)}})
}

// CreateLinkTx creates a link at a base address with which a user sets a password, and mails it if mail
// is on. It voids the user's previous link. The link is stored in the mail alone, until that is sent.
func CreateLinkTx(tx *store.Tx, by Actor, mails *mail.Mailer, base, user string) (ConsoleLink, error) {
	l, token, err := account.CreateLinkTx(tx, user)
	if err != nil {
		return ConsoleLink{}, err
	}
	link := LinkAt(base, l, token)
	if err := MailLinkTx(tx, mails, link, mail.English); err != nil {
		return ConsoleLink{}, err
	}
	return link, writeLogTx(tx, by, LogRow{Act: UserLink, Object: user, Account: l.User.Account,
		After: Details{"link": string(l.Kind), "expires": l.ExpiresMS / 1000}})
}

// InviteTx adds a sign-in without a password to an account, and creates its link as CreateLinkTx does.
func InviteTx(tx *store.Tx, by Actor, mails *mail.Mailer, base, id string, in account.SignIn) (ConsoleLink, error) {
	u, err := CreateUserTx(tx, by, id, in)
	if err != nil {
		return ConsoleLink{}, err
	}
	return CreateLinkTx(tx, by, mails, base, u.ID)
}

// ChangeUserTx changes a sign-in. A user disabled here cannot be enabled by colleagues.
func ChangeUserTx(tx *store.Tx, by Actor, user string, c account.UserChange) (account.User, error) {
	was, err := account.LockUserTx(tx, user)
	if err != nil {
		return was, err
	}
	c.ByOperator = true
	u, err := account.ChangeUserTx(tx, user, c)
	if err != nil {
		return u, err
	}
	before, after := userDetails(was), userDetails(u)
	if c.PasswordHash != nil {
		after["password"] = "new"
	}
	if was.Disabled && u.Barred && !was.Barred { // disabled by a colleague before
		after["disabled_by"] = "operator"
	}
	if was.FactorMS != u.FactorMS { // operators can only turn the second factor off
		before["second_factor"], after["second_factor"] = "on", "off"
	}
	return u, writeLogTx(tx, by, LogRow{Act: UserChange, Object: user, Account: u.Account, Before: before, After: after})
}

// DeleteUserTx deletes a sign-in permanently.
func DeleteUserTx(tx *store.Tx, by Actor, user string) error {
	before, err := account.LockUserTx(tx, user)
	if err != nil {
		return err
	}
	if err := account.DeleteUserTx(tx, user); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: UserDelete, Object: user, Account: before.Account, Before: userDetails(before)})
}
