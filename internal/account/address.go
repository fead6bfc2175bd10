package account

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"tollgate/internal/store"
)

// maxAddressAge is the time to verify a new address.
const maxAddressAge = 24 * time.Hour

// maxAddressChanges bounds the new addresses of a user in attemptWindow.
const maxAddressChanges = 3

// AddressChange is a new email of a user, which is not verified yet.
type AddressChange struct {
	User      User // with the old email
	Email     string
	ExpiresMS int64
}

// RequestAddress records a new email of a user for 24 hours, in place of an earlier one, and calls
// mailTx in the same transaction. If another user has the email, the token is empty. The result and its
// time are the same in both cases. Errors: *fault.Error at `email`; 429 with the time to wait after too
// many requests.
func (s *SignIns) RequestAddress(
	ctx context.Context, user, email string, mailTx func(tx *store.Tx, c AddressChange, token string) error,
) error {
	email, err := ParseEmail(email)
	if err != nil {
		return err
	}
	defer s.beginAnswer(ctx)()
	return s.db.Update(ctx, func(tx *store.Tx) error {
		if _, err := recordAttemptTx(tx, []subject{
			{name: "address of " + user, maxCount: maxAddressChanges, message: "Too many new addresses."}, mailboxSubject(email),
		}); err != nil {
			return err
		}
		taken, err := EmailTakenTx(tx, email)
		if err != nil {
			return err
		}
		u, err := LockUserTx(tx, user)
		if err != nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		c := AddressChange{User: u, Email: email, ExpiresMS: now + maxAddressAge.Milliseconds()}
		if taken {
			return mailTx(tx, c, "")
		}
		token := newToken()
		if _, err := tx.Exec(`INSERT INTO account_address (member, hash, email, expires_ms) VALUES ($1, $2, $3, $4)
			ON CONFLICT (member) DO UPDATE SET hash = excluded.hash, email = excluded.email, expires_ms = excluded.expires_ms`,
			user, hashText(token), email, c.ExpiresMS); err != nil {
			return fmt.Errorf("insert new address: %w", err)
		}
		return mailTx(tx, c, token)
	})
}

// addressTx returns the new email of a user for a token, or ErrNoLink.
func addressTx(tx *store.Tx, user, token string) (email string, err error) {
	_, err = scanTokenTx(tx, tx.QueryRow(`SELECT expires_ms, email FROM account_address WHERE hash = $1 AND member = $2`,
		hashText(token), user), &email)
	return email, err
}

// Address returns the new email of a signed-in user for a token, without using the token up. The token
// of another user is invalid, because the mail may have reached a stranger. Errors: ErrNoLink, otherwise as for
// Password.
func (s *SignIns) Address(ctx context.Context, user, token string, addr netip.Addr) (email string, err error) {
	err = s.useToken(ctx, token, addr, func(tx *store.Tx) (err error) {
		email, err = addressTx(tx, user, token)
		return err
	})
	return email, err
}

// VerifyAddressTx makes the email of a token the email of a signed-in user, and uses the token up.
// Error: ErrNoLink, also if another user has got the email meanwhile.
func VerifyAddressTx(tx *store.Tx, user, token string) error {
	if err := tx.Lock("account_user", "id", user); err != nil {
		return err
	}
	email, err := addressTx(tx, user, token)
	if err != nil {
		return err
	}
	_, err = ChangeUserTx(tx, user, UserChange{Email: &email}) // also voids the token
	if IsInvalid(err) {
		return ErrNoLink
	}
	return err
}
