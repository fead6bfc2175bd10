package operator

import (
	"tollgate/internal/account"
	"tollgate/internal/fault"
	"tollgate/internal/mail"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

func userDetails(u account.User) Details {
	f := Details{"email": u.Email, "disabled": u.Disabled, "operator": u.Role != ""}
	if u.Role != "" {
		f["role"] = u.Role
	}
	return f
}

// checkRole returns an error unless an actor may change the sign-in of a user with a role.
func checkRole(by Actor, role account.OperatorRole) error {
	if role == "" || by.Role == account.Owner {
		return nil
	}
	return fault.New(fault.PermissionDenied,
		"Only an owner of this service may change operators and their sign-ins. Ask an owner to do this, or to make you an owner.")
}

// CreateUserTx adds a sign-in to an account. Only an owner can give it a role.
func CreateUserTx(tx *store.Tx, by Actor, id string, in account.SignIn) (account.User, error) {
	if err := checkRole(by, in.Role); err != nil {
		return account.User{}, err
	}
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
	kind, values := mail.Invitation, map[string]string{"expires": mail.Time(l.ExpiresMS)}
	switch {
	case l.Kind == account.Reset:
		kind = mail.Reset
	case l.User.Role != "":
		kind, values["role"] = mail.OperatorInvitation, string(l.User.Role)
	}
	return account.MailUserTx(tx, mails, l.User, mail.Letter{Kind: kind, Cause: id.New("link_"), Locale: locale,
		Link: l.Address, ExpiresMS: l.ExpiresMS, Values: values})
}

// CreateLinkTx creates a link at a base address with which a user sets a password, and mails it if mail
// is on. It voids the user's previous link. Only the text of the mail contains the link, and the text is
// deleted when the mail is sent.
func CreateLinkTx(tx *store.Tx, by Actor, mails *mail.Mailer, base, user string) (ConsoleLink, error) {
	l, token, err := account.CreateLinkTx(tx, user)
	if err != nil {
		return ConsoleLink{}, err
	}
	if err := checkRole(by, l.User.Role); err != nil {
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

// InviteOperatorTx opens an account for a new operator, without credit, and adds the sign-in as InviteTx
// does. With an account of their own, operators are not users of a customer's account.
func InviteOperatorTx(tx *store.Tx, by Actor, mails *mail.Mailer, base string, in account.SignIn) (ConsoleLink, error) {
	a, err := CreateAccountTx(tx, by, account.NewAccount{Name: accountName(in.Email), Email: in.Email})
	if err != nil {
		return ConsoleLink{}, err
	}
	return InviteTx(tx, by, mails, base, a.ID, in)
}

// SetRoleTx gives a user a role, or takes it away if role is empty. Errors as for ChangeUserTx.
func SetRoleTx(tx *store.Tx, by Actor, user string, role account.OperatorRole) (account.User, error) {
	return ChangeUserTx(tx, by, user, account.UserChange{Role: &role})
}

// keepOwnerTx returns an error if a change removes the last enabled owner.
func keepOwnerTx(tx *store.Tx, before, after account.User) error {
	wasOwner, isOwner := before.Role == account.Owner && !before.Disabled, after.Role == account.Owner && !after.Disabled
	if !wasOwner || isOwner {
		return nil
	}
	return account.KeepOwnerTx(tx)
}

// ChangeUserTx changes a sign-in. Other users of the account cannot enable a user disabled by an operator.
// Only an owner can change a role, or the sign-in of a user with a role. A change that removes the last
// enabled owner is an error.
func ChangeUserTx(tx *store.Tx, by Actor, user string, c account.UserChange) (account.User, error) {
	old, err := account.LockUserTx(tx, user)
	if err != nil {
		return old, err
	}
	role := old.Role
	if c.Role != nil && role == "" {
		role = *c.Role
	}
	if err := checkRole(by, role); err != nil {
		return old, err
	}
	c.ByOperator = true
	u, err := account.ChangeUserTx(tx, user, c)
	if err != nil {
		return u, err
	}
	if err := keepOwnerTx(tx, old, u); err != nil {
		return u, err
	}
	before, after := userDetails(old), userDetails(u)
	if c.PasswordHash != nil {
		after["password"] = "new"
	}
	if old.Disabled && u.Barred && !old.Barred { // disabled by a colleague before
		after["disabled_by"] = "operator"
	}
	if old.FactorMS != u.FactorMS { // operators can only turn the second factor off
		before["second_factor"], after["second_factor"] = "on", "off"
	}
	return u, writeLogTx(tx, by, LogRow{Act: UserChange, Object: user, Account: u.Account, Before: before, After: after})
}

// DeleteUserTx deletes a sign-in permanently. Errors as for ChangeUserTx.
func DeleteUserTx(tx *store.Tx, by Actor, user string) error {
	before, err := account.LockUserTx(tx, user)
	if err != nil {
		return err
	}
	if err := checkRole(by, before.Role); err != nil {
		return err
	}
	if err := account.DeleteUserTx(tx, user); err != nil {
		return err
	}
	if err := keepOwnerTx(tx, before, account.User{}); err != nil {
		return err
	}
	return writeLogTx(tx, by, LogRow{Act: UserDelete, Object: user, Account: before.Account, Before: userDetails(before)})
}
