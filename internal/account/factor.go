package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// recoveryCodes is the number of recovery codes of a user. Each code is valid once.
const recoveryCodes = 10

// factor is a user's second factor as stored in the user's row.
type factor struct {
	secret  string // base32; empty if the user has not begun a second factor
	sinceMS int64  // 0 if not confirmed, so sign-ins need no code
	step    int64  // step of the newest used code
}

// lockFactorTx reads a user's second factor, and prevents other transactions from using its codes
// until this transaction ends.
func lockFactorTx(tx *store.Tx, user string) (f factor, err error) {
	if err := tx.Lock("account_user", "id", user); err != nil {
		return f, err
	}
	err = tx.QueryRow(`SELECT totp_secret, totp_since_ms, totp_step FROM account_user WHERE id = $1`, user).
		Scan(&f.secret, &f.sinceMS, &f.step)
	if errors.Is(err, sql.ErrNoRows) {
		return f, notFound("user", user)
	}
	if err != nil {
		return f, fmt.Errorf("read second factor: %w", err)
	}
	return f, nil
}

// match returns the step of an app's code. ok is false if the code is not valid now. The step must be
// later than all used steps, so that no code works twice. If the clock was once ahead, only recovery
// codes work until the clock reaches that time.
func (f factor) match(code string, nowMS int64) (step int64, ok bool, err error) {
	secret, err := totpEncoding.DecodeString(f.secret)
	if err != nil {
		return 0, false, fmt.Errorf("read second factor: %w", err)
	}
	step, ok = totpMatch(secret, code, nowMS, f.step)
	return step, ok, nil
}

// errFactorExists returns the error for a second factor that is already on.
func errFactorExists() error {
	return fault.New(fault.InvalidRequest, "Your second factor is already on. To set it up again, turn it off first.")
}

// BeginFactorTx creates the secret of a second factor, in base32, and replaces an unconfirmed one.
// Sign-ins do not change before ConfirmFactorTx.
func BeginFactorTx(tx *store.Tx, user string) (secret string, err error) {
	f, err := lockFactorTx(tx, user)
	if err != nil {
		return "", err
	}
	if f.sinceMS != 0 {
		return "", errFactorExists()
	}
	secret = newTOTPSecret()
	if _, err := tx.Exec(`UPDATE account_user SET totp_secret = $1, totp_step = 0 WHERE id = $2`, secret, user); err != nil {
		return "", fmt.Errorf("begin second factor: %w", err)
	}
	return secret, nil
}

// ConfirmFactorTx checks a code of the app, turns the new second factor on and returns the recovery
// codes, which are not stored. All sessions of the user end. For a wrong code, the error is a
// *fault.Error at `code`.
func ConfirmFactorTx(tx *store.Tx, user, code string) (recovery []string, err error) {
	f, err := lockFactorTx(tx, user)
	if err != nil {
		return nil, err
	}
	switch {
	case f.sinceMS != 0:
		return nil, errFactorExists()
	case f.secret == "":
		return nil, fault.New(fault.InvalidRequest, "There is no setup to confirm with this code. Start again.")
	}
	now, err := tx.NowMS()
	if err != nil {
		return nil, err
	}
	step, ok, err := f.match(canonicalTOTP(code), now)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.At(fault.InvalidRequest, "code",
			"This code is wrong or expired. Check the clock of the device, then type the code that the app shows now.")
	}
	if _, err := tx.Exec(`UPDATE account_user SET totp_since_ms = $1, totp_step = $2 WHERE id = $3`, now, step, user); err != nil {
		return nil, fmt.Errorf("turn second factor on: %w", err)
	}
	if recovery, err = makeRecoveryTx(tx, user); err != nil {
		return nil, err
	}
	return recovery, EndSessionsTx(tx, user)
}

// RenewRecoveryTx replaces the recovery codes of a user with a second factor, and returns the new
// codes, which are not stored. The caller must check the user first (SignIns.Code).
func RenewRecoveryTx(tx *store.Tx, user string) ([]string, error) {
	f, err := lockFactorTx(tx, user)
	if err != nil {
		return nil, err
	}
	if f.sinceMS == 0 {
		return nil, fault.New(fault.InvalidRequest, "Your second factor is off, so it needs no recovery codes. Turn it on first.")
	}
	return makeRecoveryTx(tx, user)
}

// makeRecoveryTx replaces a user's recovery codes by new ones.
func makeRecoveryTx(tx *store.Tx, user string) (recovery []string, err error) {
	if err := forgetRecoveryTx(tx, user); err != nil {
		return nil, err
	}
	for range recoveryCodes {
		text := newCode()
		if _, err := tx.Exec(`INSERT INTO account_recovery (hash, member) VALUES ($1, $2)`, hashText(canonicalCode(text)), user); err != nil {
			return nil, fmt.Errorf("insert recovery code: %w", err)
		}
		recovery = append(recovery, text)
	}
	return recovery, nil
}

// EndFactorTx turns a user's second factor off and deletes the recovery codes. It is a no-op if the
// user has no second factor.
func EndFactorTx(tx *store.Tx, user string) error {
	if _, err := lockFactorTx(tx, user); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE account_user SET totp_secret = '', totp_since_ms = 0, totp_step = 0 WHERE id = $1`, user); err != nil {
		return fmt.Errorf("turn second factor off: %w", err)
	}
	return forgetRecoveryTx(tx, user)
}

// CountRecoveryTx returns the number of a user's unused recovery codes.
func CountRecoveryTx(tx *store.Tx, user string) (unused int64, err error) {
	if err := tx.QueryRow(`SELECT COUNT(*) FROM account_recovery WHERE member = $1`, user).Scan(&unused); err != nil {
		return 0, fmt.Errorf("count recovery codes: %w", err)
	}
	return unused, nil
}

func forgetRecoveryTx(tx *store.Tx, user string) error {
	if _, err := tx.Exec(`DELETE FROM account_recovery WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete recovery codes: %w", err)
	}
	return nil
}

// useCodeTx reports whether a code is a valid app code or recovery code of a user. A valid code is
// used up.
func useCodeTx(tx *store.Tx, user, code string) (bool, error) {
	f, err := lockFactorTx(tx, user)
	if err != nil || f.sinceMS == 0 {
		return false, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return false, err
	}
	step, ok, err := f.match(canonicalTOTP(code), now)
	if err != nil {
		return false, err
	}
	if ok {
		if _, err := tx.Exec(`UPDATE account_user SET totp_step = $1 WHERE id = $2`, step, user); err != nil {
			return false, fmt.Errorf("note the use of a code: %w", err)
		}
		return true, nil
	}
	deleted, err := tx.Exec(`DELETE FROM account_recovery WHERE hash = $1 AND member = $2`, hashText(canonicalCode(code)), user)
	if err != nil {
		return false, fmt.Errorf("use recovery code: %w", err)
	}
	return deleted == 1, nil
}

// canonicalTOTP returns an app's code without blanks, because people type 123 456.
func canonicalTOTP(code string) string { return strings.ReplaceAll(code, " ", "") }

// Code checks a user's app code or recovery code, and uses up a valid code. Errors as for Password.
func (s *SignIns) Code(ctx context.Context, user, code string, addr netip.Addr) error {
	subjects := []subject{{name: "code " + user, maxCount: maxCodeAttempts}, addressSubject(addr, maxAddressAttempts)}
	return s.attempt(ctx, addr, subjects, func() (bool, error) {
		return store.Write(ctx, s.db, func(tx *store.Tx) (bool, error) { return useCodeTx(tx, user, code) })
	})
}
