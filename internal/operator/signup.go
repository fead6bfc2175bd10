package operator

import (
	"net/netip"
	"strings"

	"tollgate/internal/account"
	"tollgate/internal/mail"
	"tollgate/internal/store"
)

// SignUps are the settings of accounts that customers create. The zero value means that none can.
type SignUps struct {
	Rules account.SignUpRules
	Trial account.Trial
}

// VerifyPath is the console's path of a sign-up's link; the token follows it, as after LinkPath.
const VerifyPath = "/console/verify#"

// MailSignUpTx mails the link of a sign-up at a base address, or the news that a user signs in with the
// address already. account is the user's account.
func MailSignUpTx(tx *store.Tx, mails *mail.Mailer, base string, s account.SignUp, token, account, cause string, locale mail.Locale) error {
	l := mail.Letter{Kind: mail.KnownUser, Subject: s.Email, Cause: cause, Account: account, To: s.Email, Locale: locale,
		Link: base + "/console/sign-in"}
	if token != "" {
		l.Kind, l.Link, l.ExpiresMS = mail.SignUp, base+VerifyPath+token, s.ExpiresMS
		l.Values = map[string]string{"expires": mail.Time(s.ExpiresMS)}
	}
	return mails.EnqueueTx(tx, l)
}

// SignUpTx opens an account with its user for a customer with a verified address, and grants the trial
// credit. The log names the customer.
func SignUpTx(tx *store.Tx, in account.SignIn, addr netip.Addr, trial account.Trial) (account.User, error) {
	by := Actor{Way: SignUp, Name: in.Email, Address: addr.String()}
	a, err := CreateAccountTx(tx, by, account.NewAccount{Name: accountName(in.Email), Email: in.Email})
	if err != nil {
		return account.User{}, err
	}
	u, err := CreateUserTx(tx, by, a.ID, in)
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

// accountName returns the name of the account of a customer who signs up. An address may be longer than
// a name.
func accountName(email string) string { return strings.ToValidUTF8(email[:min(len(email), 200)], "") }
