package operator

import (
	"errors"
	"net/netip"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// SignUps are the settings of accounts that customers create. With the zero value, nobody can sign up.
type SignUps struct {
	Rules account.SignUpRules
	Trial account.Trial
}

// VerifyPath is the console's path of a sign-up's link; the token follows it, as after LinkPath.
const VerifyPath = "/console/verify#"

// MailSignUpTx mails the link of a sign-up at a base address. If token is empty, the mail says instead that
// the address already belongs to a user, and account is the user's account.
func MailSignUpTx(tx *store.Tx, mails *mail.Mailer, base string, s account.SignUp, token, account, cause string, locale mail.Locale) error {
	l := mail.Letter{Kind: mail.KnownUser, Subject: s.Email, Cause: cause, Account: account, To: s.Email, Locale: locale,
		Link: base + "/console/sign-in"}
	if token != "" {
		l.Kind, l.Link, l.ExpiresMS = mail.SignUp, base+VerifyPath+token, s.ExpiresMS
		l.Values = map[string]string{"expires": mail.Time(s.ExpiresMS)}
	}
	return mails.EnqueueTx(tx, l)
}

// NewAddressPath is the console's path of a link that verifies a user's new address.
const NewAddressPath = "/console/settings/email#"

// MailAddressTx mails a link to a user's new address and a notice to the old one. If token is empty, the
// new address already belongs to a user, and the mail to it says so, as for a sign-up.
func MailAddressTx(tx *store.Tx, mails *mail.Mailer, base string, c account.AddressChange, token, cause string, locale mail.Locale) error {
	old := mail.Letter{Kind: mail.OldAddress, Subject: c.User.ID, Cause: cause, Account: c.User.Account, To: c.User.Email, Locale: locale,
		Link: base + "/console/settings", Values: map[string]string{"new": c.Email}}
	if err := mails.EnqueueTx(tx, old); err != nil {
		return err
	}
	if token == "" {
		return MailSignUpTx(tx, mails, base, account.SignUp{Email: c.Email}, "", "", cause, locale)
	}
	return mails.EnqueueTx(tx, mail.Letter{Kind: mail.NewAddress, Subject: c.User.ID, Cause: cause, Account: c.User.Account, To: c.Email,
		Locale: locale, Link: base + NewAddressPath + token, ExpiresMS: c.ExpiresMS,
		Values: map[string]string{"from": c.User.Email, "expires": mail.Time(c.ExpiresMS)}})
}

// SignUpTx opens an account with its user for a customer with a verified address, records the accepted
// terms, and grants the trial credit. An open invitation of the address ends; see account.HolderTx. The log names
// the customer.
func SignUpTx(tx *store.Tx, in account.SignIn, addr netip.Addr, trial account.Trial) (account.User, error) {
	by := Actor{Way: SignUp, Name: in.Email, Address: addr.String()}
	invited, holds, err := account.HolderTx(tx, in.Email)
	if err == nil && !holds && invited.ID != "" {
		err = errors.Join(account.DeleteUserTx(tx, invited.ID),
			writeLogTx(tx, by, LogRow{Act: UserDelete, Object: invited.ID, Account: invited.Account, Before: userDetails(invited)}))
	}
	if err != nil {
		return account.User{}, err
	}
	a, err := CreateAccountTx(tx, by, account.NewAccount{Name: accountName(in.Email), Email: in.Email})
	if err != nil {
		return account.User{}, err
	}
	u, err := CreateUserTx(tx, by, a.ID, in)
	if err == nil && in.TermsVersion != "" {
		err = account.AcceptTermsTx(tx, u.ID, in.TermsVersion, addr)
	}
	if err != nil {
		return u, err
	}
	granted, err := account.GrantTrialTx(tx, a.ID, in.Email, trial)
	if err != nil || granted == 0 {
		return u, err
	}
	return u, writeLogTx(tx, by, LogRow{Act: AccountTrial, Object: a.ID, Account: a.ID,
		After: Details{"usd": granted, "balance_usd": granted}})
}

// accountName returns an address as the name of an account, cut to the maximum length of a name.
func accountName(email string) string { return strings.ToValidUTF8(email[:min(len(email), 200)], "") }
