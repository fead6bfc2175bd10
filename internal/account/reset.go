package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"tollgate/internal/limit"
	"tollgate/internal/store"
)

// Limits of requested resets in attemptWindow. Requests with unknown emails count too, so the limits
// reveal nothing.
const (
	maxEmailResets   = 3  // with an email, from any address
	maxAddressResets = 10 // from an IPv4 address or an IPv6 network of 64 bits
)

// answerTime is the time of each answer to a request for a mail. The work is shorter, so the time does
// not reveal whether the email is known.
const answerTime = 500 * time.Millisecond

// beginAnswer returns a function that waits until answerTime after the call of beginAnswer.
func (s *SignIns) beginAnswer(ctx context.Context) (finish func()) {
	var pause sync.WaitGroup
	pause.Go(func() { s.wait(ctx, answerTime) })
	return pause.Wait
}

// RequestReset creates a link for the user with an email and calls mailTx in the same transaction. The
// link works once, for an hour, and voids the user's former link. RequestReset does nothing for an
// unknown email or a disabled user. Its result and its time are the same in all cases. Errors: 429 with
// the time to wait after too many requests.
func (s *SignIns) RequestReset(
	ctx context.Context, email string, addr netip.Addr, mailTx func(tx *store.Tx, l PasswordLink, token string) error,
) error {
	defer s.beginAnswer(ctx)()
	if canonical, err := readEmail(email); err == nil {
		email = canonical
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := recordAttemptTx(tx, []subject{
			{name: "reset " + email, maxCount: maxEmailResets, message: "Too many mails to this address were asked for."},
			{name: "reset from " + limit.Network(addr).String(), maxCount: maxAddressResets, message: "Too many mails were asked for."},
		}); err != nil {
			return err
		}
		u, found, err := lockEmailTx(tx, email)
		if err != nil || !found {
			return err
		}
		allowed, err := maySignInTx(tx, u)
		if err != nil || !allowed {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		l := newLink(u, now)
		l.ExpiresMS = now + maxMailedAge.Milliseconds()
		token, err := insertLinkTx(tx, l)
		if err != nil {
			return err
		}
		return mailTx(tx, l, token)
	})
}

// lockEmailTx returns the user with an email in canonical form and locks its row.
func lockEmailTx(tx *store.Tx, email string) (u User, found bool, err error) {
	var user string
	err = tx.QueryRow(`SELECT id FROM account_user WHERE email = $1`, email).Scan(&user)
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, false, nil
	}
	if err != nil {
		return User{}, false, fmt.Errorf("read user: %w", err)
	}
	if u, err = LockUserTx(tx, user); err != nil {
		return User{}, false, err
	}
	return u, u.Email == email, nil
}
