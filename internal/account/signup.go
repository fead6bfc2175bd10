package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/limit"
	"tollgate/internal/store"
)

// SignUpMode says which people may create an account without an operator.
type SignUpMode string

// The modes of sign-up.
const (
	SignUpClosed  SignUpMode = "closed"  // nobody
	SignUpDomains SignUpMode = "domains" // people with an address at a listed domain
	SignUpOpen    SignUpMode = "open"    // everybody with an address
)

// SignUpRules are the settings of sign-up. The zero value means closed.
type SignUpRules struct {
	Mode    SignUpMode
	Domains []string // lower case; only with SignUpDomains
}

// On reports whether anybody may sign up.
func (r SignUpRules) On() bool { return r.Mode == SignUpDomains || r.Mode == SignUpOpen }

// CheckEmail returns an error if the rules exclude an email in canonical form. A listed domain does not
// include its subdomains.
func (r SignUpRules) CheckEmail(email string) error {
	_, domain, _ := strings.Cut(email, "@")
	if r.Mode == SignUpDomains && !slices.Contains(r.Domains, domain) {
		return fault.At(fault.InvalidRequest, "email", "Sign-up is only for addresses at %s.", strings.Join(r.Domains, ", "))
	}
	return nil
}

// Limits of sign-ups. Sign-ups with known emails count too, so the limits reveal nothing.
const (
	maxSignUpAge      = 24 * time.Hour
	maxEmailSignUps   = 3  // with an email, from any address, in attemptWindow
	maxAddressSignUps = 10 // from an IPv4 address or an IPv6 network of 64 bits, in attemptWindow
	maxSignUps        = 8  // in progress; Passwords hashes two at a time
)

// SignUp is a sign-up whose email is not verified yet.
type SignUp struct {
	Email     string // canonical
	ExpiresMS int64
	// SameBrowser reports whether the email is verified in the browser of the sign-up. Another browser
	// may belong to another person, so the person there must choose a new password.
	SameBrowser bool

	password string // the hash
	terms    string // the accepted version; empty for none
}

// SignUpRequest is a request to sign up.
type SignUpRequest struct {
	Email, Password string
	Addr            netip.Addr
	// TermsVersion is the version of the terms accepted in the form. It may be empty.
	TermsVersion string
	// FormFault is a fault of another field of the form, or nil. It is reported with those of the email and the password.
	FormFault error
	// Allow is called after the limits and before any mail. An error refuses the sign-up.
	Allow func(ctx context.Context) error
	// MailTx mails the token of a sign-up. If a user signs in with the email already, the token is empty
	// and account is the user's account.
	MailTx func(tx *store.Tx, s SignUp, token, account string) error
}

// RequestSignUp records a sign-up for 24 hours and calls MailTx in the same transaction. It returns the
// value of a cookie for the browser. Its result and its time are the same whether or not the email is
// known. Errors: *fault.Error at `email` or `password`; 429 with the time to wait after too many
// sign-ups; 503 if too many are in progress; the error of Allow.
func (s *SignIns) RequestSignUp(ctx context.Context, rules SignUpRules, r SignUpRequest) (browser string, err error) {
	email, err := ParseEmail(r.Email)
	if err == nil {
		err = rules.CheckEmail(email)
	}
	if err := errors.Join(err, CheckPassword(r.Password), r.FormFault); err != nil {
		return "", err
	}
	leave, err := s.enter(ctx, s.signUps, r.Addr)
	if err != nil {
		return "", err
	}
	defer leave()
	if err := s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := recordAttemptTx(tx, []subject{
			mailboxSubject(email),
			addressSignUpSubject(r.Addr),
		})
		return err
	}); err != nil {
		return "", err
	}
	if err := r.Allow(ctx); err != nil {
		return "", err
	}
	hash, err := s.passwords.Hash(ctx, r.Password)
	if err != nil {
		return "", err
	}
	defer s.beginAnswer(ctx)()
	browser = newToken()
	return browser, s.db.Update(ctx, func(tx *store.Tx) error {
		u, holds, err := HolderTx(tx, email)
		if err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		signUp := SignUp{Email: email, ExpiresMS: now + maxSignUpAge.Milliseconds()}
		if holds {
			return r.MailTx(tx, signUp, "", u.Account)
		}
		token := newToken()
		if _, err := tx.Exec(`INSERT INTO account_signup (hash, email, password, browser, terms, expires_ms) VALUES ($1, $2, $3, $4, $5, $6)`,
			hashText(token), email, hash, hashText(browser), r.TermsVersion, signUp.ExpiresMS); err != nil {
			return fmt.Errorf("insert sign-up: %w", err)
		}
		return r.MailTx(tx, signUp, token, "")
	})
}

// HolderTx returns the user with an email in canonical form, or the zero User. holds reports whether the user
// prevents a sign-up with the email. A user with an open invitation to an account with other users does not,
// because anybody with an account could invite the email before its owner signs up.
func HolderTx(tx *store.Tx, email string) (u User, holds bool, err error) {
	if err := claimEmailTx(tx, email); err != nil {
		return User{}, false, err
	}
	u, found, err := lockEmailTx(tx, email)
	if err != nil || !found || !u.Invited() || u.Role != "" || u.Disabled {
		return u, found, err
	}
	var others bool
	err = tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM account_user WHERE account = $1 AND (password <> '`+noPassword+`' OR `+hasIdentity+`))`,
		u.Account).Scan(&others)
	if err != nil {
		return User{}, false, fmt.Errorf("look for the users of an account: %w", err)
	}
	return u, !others, nil
}

// mailboxSubject limits the mails that verify an address.
func mailboxSubject(email string) subject {
	return subject{name: "mailbox " + foldEmail(email), maxCount: maxEmailSignUps, message: "Too many mails to this address were asked for."}
}

// addressSignUpSubject limits the sign-ups from an address.
func addressSignUpSubject(addr netip.Addr) subject {
	return subject{name: "sign-up from " + limit.Network(addr).String(), maxCount: maxAddressSignUps, message: "Too many sign-ups."}
}

// signUpTx returns the sign-up of a token, or ErrNoLink. browser is the browser's cookie.
func signUpTx(tx *store.Tx, token, browser string) (s SignUp, err error) {
	var browserHash string
	s.ExpiresMS, err = scanTokenTx(tx, tx.QueryRow(`SELECT expires_ms, email, password, terms, browser FROM account_signup WHERE hash = $1`,
		hashText(token)), &s.Email, &s.password, &s.terms, &browserHash)
	if err != nil {
		return SignUp{}, err
	}
	s.SameBrowser = subtle.ConstantTimeCompare([]byte(hashText(browser)), []byte(browserHash)) == 1
	return s, nil
}

// SignUp returns the sign-up of a token without using the token up. Wrong tokens count as failed
// sign-ins of the address. Errors: ErrNoLink, otherwise as for Password.
func (s *SignIns) SignUp(ctx context.Context, token, browser string, addr netip.Addr) (found SignUp, err error) {
	err = s.useToken(ctx, token, addr, func(tx *store.Tx) (err error) {
		found, err = signUpTx(tx, token, browser)
		return err
	})
	return found, err
}

// VerifySignUp calls createTx with the email and the password hash of a sign-up. createTx must create the
// user with CreateUserTx, which ends all sign-ups with the email. If the browser is not the browser of the sign-up,
// password replaces the sign-up's password, and the acceptance of the terms is lost. Otherwise password is
// ignored. One of several concurrent calls with the token succeeds. Errors: as for SignUp; *fault.Error at
// `password`; the error of createTx.
func (s *SignIns) VerifySignUp(
	ctx context.Context, token, browser, password string, addr netip.Addr, createTx func(tx *store.Tx, in SignIn) error,
) error {
	pending, err := s.SignUp(ctx, token, browser, addr)
	if err != nil {
		return err
	}
	in := SignIn{Email: pending.Email, PasswordHash: pending.password, TermsVersion: pending.terms}
	if !pending.SameBrowser {
		if in.PasswordHash, err = s.passwords.Hash(ctx, password); err != nil {
			return err
		}
		in.TermsVersion = ""
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if err := claimEmailTx(tx, pending.Email); err != nil {
			return err
		}
		if _, err := signUpTx(tx, token, browser); err != nil {
			return err
		}
		return createTx(tx, in)
	})
}

// endSignUpsTx deletes the sign-ups with an email.
func endSignUpsTx(tx *store.Tx, email string) error {
	if _, err := tx.Exec(`DELETE FROM account_signup WHERE email = $1`, email); err != nil {
		return fmt.Errorf("delete sign-ups: %w", err)
	}
	return nil
}

// foldedHosts are mail hosts with several names. host is the name in the folded address. If dots is true, the
// mail host ignores dots before the @.
var foldedHosts = map[string]struct {
	host string
	dots bool
}{
	"gmail.com": {"gmail.com", true}, "googlemail.com": {"gmail.com", true},
	"icloud.com": {"icloud.com", false}, "me.com": {"icloud.com", false}, "mac.com": {"icloud.com", false},
	"proton.me": {"proton.me", true}, "protonmail.com": {"proton.me", true}, "pm.me": {"proton.me", true},
}

// foldEmail returns the mailbox of an email in canonical form, without a + and the text after it, because many
// hosts deliver all such addresses to one mailbox. A mailbox is only for limits and never identifies a user.
func foldEmail(email string) string {
	local, domain, _ := strings.Cut(email, "@")
	if bare, _, _ := strings.Cut(local, "+"); bare != "" {
		local = bare
	}
	rule, known := foldedHosts[domain]
	if !known {
		return local + "@" + domain
	}
	if bare := strings.ReplaceAll(local, ".", ""); rule.dots && bare != "" {
		local = bare
	}
	return local + "@" + rule.host
}
