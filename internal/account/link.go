package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Maximum ages of links.
const (
	maxInvitationAge = 7 * 24 * time.Hour
	maxResetAge      = 24 * time.Hour
	maxMailedAge     = time.Hour // of a link from RequestReset
)

// LinkKind is the purpose of a link.
type LinkKind string

// The kinds of links.
const (
	Invitation LinkKind = "invitation" // for a user with no way to sign in yet
	Reset      LinkKind = "reset"      // for a user with a forgotten password, or with an identity only
)

// PasswordLink is a link to set a user's password once. It does not have the link's token.
type PasswordLink struct {
	Kind      LinkKind
	User      User
	ExpiresMS int64
}

// ErrNoLink means that a token is invalid: unknown, used, expired or replaced, or its user or
// account is disabled. The answer never reveals the reason.
var ErrNoLink = errors.New("no such link")

// CreateLinkTx creates a link for a user, voids the user's former link, and returns the new link and
// its token. The token has 256 random bits and is not stored. If the user or the account is
// disabled, the error is a *fault.Error.
func CreateLinkTx(tx *store.Tx, user string) (PasswordLink, string, error) {
	u, err := LockUserTx(tx, user)
	if err != nil {
		return PasswordLink{}, "", err
	}
	allowed, err := maySignInTx(tx, u)
	if err != nil {
		return PasswordLink{}, "", err
	}
	if !allowed {
		return PasswordLink{}, "", fault.New(fault.InvalidRequest,
			"%s, or the account, is disabled, so a link would not work. Enable it first.", clip(u.Email))
	}
	now, err := tx.NowMS()
	if err != nil {
		return PasswordLink{}, "", err
	}
	l := newLink(u, now)
	token, err := insertLinkTx(tx, l)
	return l, token, err
}

// insertLinkTx stores a link in place of the user's former link and returns its new token.
func insertLinkTx(tx *store.Tx, l PasswordLink) (string, error) {
	token := newToken()
	if _, err := tx.Exec(`INSERT INTO account_link (member, hash, expires_ms) VALUES ($1, $2, $3)
		ON CONFLICT (member) DO UPDATE SET hash = excluded.hash, expires_ms = excluded.expires_ms`,
		l.User.ID, hashText(token), l.ExpiresMS); err != nil {
		return "", fmt.Errorf("insert link: %w", err)
	}
	return token, nil
}

// newLink returns a new link for a user.
func newLink(u User, nowMS int64) PasswordLink {
	if u.Invited() {
		return PasswordLink{Kind: Invitation, User: u, ExpiresMS: nowMS + maxInvitationAge.Milliseconds()}
	}
	return PasswordLink{Kind: Reset, User: u, ExpiresMS: nowMS + maxResetAge.Milliseconds()}
}

// maySignInTx reports whether both the user and its account are enabled.
func maySignInTx(tx *store.Tx, u User) (bool, error) {
	a, err := GetTx(tx, u.Account)
	return err == nil && !u.Disabled && !a.Money.Disabled, err
}

// scanTokenTx reads the row of a token: its expiry in ms, then dest. Error: ErrNoLink without a row and
// after the expiry.
func scanTokenTx(tx *store.Tx, row store.Row, dest ...any) (expiresMS int64, err error) {
	err = row.Scan(append([]any{&expiresMS}, dest...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNoLink
	}
	if err != nil {
		return 0, fmt.Errorf("read the row of a token: %w", err)
	}
	now, err := tx.NowMS()
	if err == nil && now >= expiresMS {
		err = ErrNoLink
	}
	return expiresMS, err
}

// linkTx returns the link of a token, or ErrNoLink. The database compares hashes, so that timing
// reveals nothing about a token.
func linkTx(tx *store.Tx, token string) (PasswordLink, error) { return linkOfTx(tx, hashText(token)) }

// linkOfTx is linkTx for the hash of a token.
func linkOfTx(tx *store.Tx, hash string) (PasswordLink, error) {
	var member string
	expires, err := scanTokenTx(tx, tx.QueryRow(`SELECT expires_ms, member FROM account_link WHERE hash = $1`, hash), &member)
	if err != nil {
		return PasswordLink{}, err
	}
	u, err := GetUserTx(tx, member)
	if err != nil {
		return PasswordLink{}, err
	}
	allowed, err := maySignInTx(tx, u)
	if err != nil {
		return PasswordLink{}, err
	}
	if !allowed {
		return PasswordLink{}, ErrNoLink
	}
	l := newLink(u, 0)
	l.ExpiresMS = expires
	return l, nil
}

// useLinkTx sets the password of a link's user, ends the user's sessions, and uses the link up. One
// of several concurrent calls with the token succeeds. useLinkTx also ends the wait after failed
// sign-ins with the email from the same network. The wait after wrong codes continues, because a
// link proves nothing about the second factor.
func useLinkTx(tx *store.Tx, l PasswordLink, token, passwordHash string, addr netip.Addr) error {
	if err := tx.Lock("account_user", "id", l.User.ID); err != nil {
		return err
	}
	current, err := linkTx(tx, token)
	if err != nil {
		return err
	}
	if current.User != l.User { // for example, a second factor was turned on since, and no code was checked
		return ErrNoLink
	}
	if _, err := ChangeUserTx(tx, l.User.ID, UserChange{PasswordHash: &passwordHash}); err != nil {
		return err
	}
	for _, s := range subjectsOf(l.User.Email, addr) {
		if _, err := tx.Exec(`DELETE FROM account_attempt WHERE subject = $1`, hashText(s.name)); err != nil {
			return fmt.Errorf("forget failed attempts to sign in: %w", err)
		}
	}
	return nil
}

// endLinkTx makes a user's link and new address void, if there are any.
func endLinkTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(`DELETE FROM account_address WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete new address: %w", err)
	}
	if _, err := tx.Exec(`DELETE FROM account_link WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete link: %w", err)
	}
	return nil
}

// Link returns the link of a token without using the link up. Wrong tokens count as failed sign-ins
// of the address. A token of the wrong length is rejected without a query. Errors: ErrNoLink,
// otherwise as for Password.
func (s *SignIns) Link(ctx context.Context, token string, addr netip.Addr) (l PasswordLink, err error) {
	err = s.useToken(ctx, token, addr, func(tx *store.Tx) (err error) {
		l, err = linkTx(tx, token)
		return err
	})
	return l, err
}

// useToken calls read with a transaction to look a token up. read returns ErrNoLink for an invalid
// token. Wrong tokens count as failed sign-ins of the address.
func (s *SignIns) useToken(ctx context.Context, token string, addr netip.Addr, read func(tx *store.Tx) error) error {
	if len(token) != tokenLength {
		return ErrNoLink
	}
	err := s.attempt(ctx, addr, []subject{addressSubject(addr, maxAddressAttempts)}, func() (bool, error) {
		err := s.db.View(ctx, read)
		if errors.Is(err, ErrNoLink) {
			return false, nil
		}
		return err == nil, err
	})
	if errors.Is(err, ErrWrongSignIn) {
		err = ErrNoLink
	}
	return err
}

// UseLink sets the user's password and uses the link up. l is the result of Link for the token. A
// user with a second factor also needs a valid code. Errors: as for Link; *fault.Error at `password`
// or `code`.
func (s *SignIns) UseLink(ctx context.Context, l PasswordLink, token, password, code string, addr netip.Addr) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	if l.User.FactorMS != 0 {
		err := s.Code(ctx, l.User.ID, code, addr)
		if errors.Is(err, ErrWrongSignIn) {
			return fault.At(fault.InvalidRequest, "code", "The code is wrong or was used already. Type the code that your app shows now.")
		}
		if err != nil {
			return err
		}
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.db.Update(ctx, func(tx *store.Tx) error { return useLinkTx(tx, l, token, hash, addr) })
}
