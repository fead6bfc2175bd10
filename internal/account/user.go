package account

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"

	"tollgate/internal/announcement"
	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// User is one console sign-in of an account. The password hash stays inside this package.
type User struct {
	ID        string // user_…
	Account   string
	Email     string       // canonical, unique among all users
	Disabled  bool         // may not sign in
	Barred    bool         // disabled by an operator, so no colleague can enable or delete the user
	Role      OperatorRole // in the operator's part of the console; empty for customers
	CreatedMS int64
	FactorMS  int64 // start of the second factor for sign-ins; 0 without a second factor

	NoPassword bool // has no password yet
	Linked     bool // signs in with an identity at a provider

	TermsVersion string // the newest accepted version of the terms; empty for none
	TermsMS      int64  // the time of its acceptance
}

// Invited reports whether the user has no way to sign in yet and needs a link.
func (u User) Invited() bool { return u.NoPassword && !u.Linked }

// SignIn has the fields of a new user.
type SignIn struct {
	Email        string
	PasswordHash string // from Passwords.Hash; empty for no password yet, see CreateLinkTx
	Disabled     bool   // by an operator
	Role         OperatorRole
	TermsVersion string // the accepted version of the terms; empty for none
}

const userColumns = `id, account, email, disabled, disabled * barred, role, created_ms, totp_since_ms,
	password = '` + noPassword + `', ` + hasIdentity + `, ` + acceptanceColumns

// hasIdentity is a condition on account_user.
const hasIdentity = `EXISTS (SELECT 1 FROM account_identity WHERE member = account_user.id)`

func scanUser(row store.Row) (u User, err error) {
	err = row.Scan(u.columns()...)
	return u, err
}

// columns returns the destinations for userColumns.
func (u *User) columns() []any {
	return []any{&u.ID, &u.Account, &u.Email, &u.Disabled, &u.Barred, &u.Role, &u.CreatedMS, &u.FactorMS, &u.NoPassword, &u.Linked,
		&u.TermsVersion, &u.TermsMS}
}

// CreateUserTx adds a console sign-in to an account. It returns an error if the email is in use. The
// sign-ups with the email end, so that no password of an earlier, unverified sign-up opens the account.
func CreateUserTx(tx *store.Tx, account string, s SignIn) (User, error) {
	email, err := ParseEmail(s.Email)
	if err != nil {
		return User{}, err
	}
	if _, err := GetTx(tx, account); err != nil {
		return User{}, err
	}
	if err := claimEmailTx(tx, email); err != nil {
		return User{}, err
	}
	now, err := tx.NowMS()
	if err != nil {
		return User{}, err
	}
	u := User{ID: newID("user_", now), Account: account, Email: email, Disabled: s.Disabled, Barred: s.Disabled,
		Role: s.Role, CreatedMS: now, NoPassword: s.PasswordHash == ""}
	added, err := tx.Exec(`INSERT INTO account_user (id, account, email, password, disabled, barred, role, created_ms, mark_key)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (email) DO NOTHING`,
		u.ID, u.Account, u.Email, cmp.Or(s.PasswordHash, noPassword), store.Bool(u.Disabled), store.Bool(u.Barred), string(u.Role),
		u.CreatedMS, newToken())
	if err != nil {
		return User{}, fmt.Errorf("insert user: %w", err)
	}
	if added == 0 {
		return User{}, emailTaken(email)
	}
	return u, endSignUpsTx(tx, email)
}

// GetUserTx returns a user.
func GetUserTx(tx *store.Tx, user string) (User, error) {
	return oneUser(user, tx.QueryRow(`SELECT `+userColumns+` FROM account_user WHERE id = $1`, user))
}

func oneUser(user string, row *sql.Row) (User, error) {
	u, err := scanUser(row)
	if errors.Is(err, sql.ErrNoRows) {
		return User{}, notFound("user", user)
	}
	if err != nil {
		return User{}, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

// LockUserTx is GetUserTx with a row lock until the transaction ends.
func LockUserTx(tx *store.Tx, user string) (User, error) {
	if err := tx.Lock("account_user", "id", user); err != nil {
		return User{}, err
	}
	return GetUserTx(tx, user)
}

// ColleagueTx returns a user whom self, another user of the account, may change or delete. It locks the
// row until the transaction ends. It returns an error for self, for an operator, for a user disabled by an
// operator, and for a user of another account.
func ColleagueTx(tx *store.Tx, account, self, user string) (User, error) {
	if err := tx.Lock("account_user", "id", user); err != nil {
		return User{}, err
	}
	u, err := oneUser(user, tx.QueryRow(`SELECT `+userColumns+` FROM account_user WHERE id = $1 AND account = $2`, user, account))
	if err != nil {
		return User{}, err
	}
	if u.ID == self || u.Role != "" {
		return User{}, fault.New(fault.PermissionDenied, "You cannot do this to yourself, or to an operator. Ask the operator of this service.")
	}
	if u.Barred {
		return User{}, fault.New(fault.PermissionDenied,
			"%s was disabled by the operator, so only the operator can enable or delete this user.", clip(u.Email))
	}
	return u, nil
}

const usersPage = `SELECT ` + userColumns + ` FROM account_user WHERE account = $1 AND id > $2 ORDER BY id LIMIT $3`

// ListUsersTx returns up to limit users of an account in the order of their creation, beginning
// after the identifier in after, and reports whether there are more.
func ListUsersTx(tx *store.Tx, account, after string, limit int) ([]User, bool, error) {
	if _, err := GetTx(tx, account); err != nil {
		return nil, false, err
	}
	return listTx(tx, limit, scanUser, usersPage, account, after, limit+1)
}

// SignInOfTx returns the email of an enabled user of an account. It prefers the user with the
// account's contact address, and then the first user. It returns "" if there is no enabled user.
func SignInOfTx(tx *store.Tx, a Account) (email string, err error) {
	err = tx.QueryRow(`SELECT email FROM account_user WHERE account = $1 AND disabled = 0 ORDER BY email = $2 DESC, id LIMIT 1`,
		a.ID, a.Email).Scan(&email)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look for a sign-in: %w", err)
	}
	return email, nil
}

// UserChange is a change of a user. Nil leaves a field unchanged.
type UserChange struct {
	Email        *string
	PasswordHash *string // from Passwords.Hash
	Disabled     *bool
	ByOperator   bool          // the change of Disabled comes from an operator, so that no colleague can undo it
	Role         *OperatorRole // empty for no role
	NoFactor     bool          // turns the second factor off, with its recovery codes
}

// ChangeUserTx changes a user and returns the new state. A new password, or disabling, ends all
// sessions of the user. These changes and a new email also void the user's link, which went to the
// old address.
func ChangeUserTx(tx *store.Tx, user string, c UserChange) (User, error) {
	u, err := LockUserTx(tx, user)
	if err != nil {
		return User{}, err
	}
	oldEmail := u.Email
	if c.Email != nil && *c.Email != u.Email { // the stored email stays valid, even if a newer rule would reject it
		if u.Email, err = ParseEmail(*c.Email); err != nil {
			return User{}, err
		}
		if err := claimEmailTx(tx, u.Email); err != nil {
			return User{}, err
		}
	}
	if c.Disabled != nil {
		u.Disabled = *c.Disabled
		u.Barred = u.Disabled && c.ByOperator
	}
	if c.Role != nil {
		u.Role = *c.Role
	}
	changed, err := tx.Exec(`UPDATE account_user SET email = $1, disabled = $2, barred = $3, role = $4
		WHERE id = $5 AND NOT EXISTS (SELECT 1 FROM account_user WHERE email = $1 AND id <> $5)`,
		u.Email, store.Bool(u.Disabled), store.Bool(u.Barred), string(u.Role), u.ID)
	if err != nil {
		return User{}, fmt.Errorf("change user: %w", err)
	}
	if changed == 0 {
		return User{}, emailTaken(u.Email)
	}
	if c.PasswordHash != nil {
		if _, err := tx.Exec(`UPDATE account_user SET password = $1, mark_key = $2 WHERE id = $3`,
			*c.PasswordHash, newToken(), u.ID); err != nil {
			return User{}, fmt.Errorf("change password: %w", err)
		}
		u.NoPassword = false
	}
	if c.NoFactor {
		if err := EndFactorTx(tx, u.ID); err != nil {
			return User{}, err
		}
		u.FactorMS = 0
	}
	if u.Email != oldEmail {
		if err := endSignUpsTx(tx, u.Email); err != nil {
			return User{}, err
		}
	}
	endSessions := c.PasswordHash != nil || u.Disabled
	if endSessions || u.Email != oldEmail {
		if err := endLinkTx(tx, u.ID); err != nil {
			return User{}, err
		}
	}
	if endSessions {
		return u, EndSessionsTx(tx, u.ID)
	}
	return u, nil
}

// DeleteUserTx deletes a user permanently, with its sessions, identities, recovery codes, link, acceptances of
// the terms and dismissals of announcements.
func DeleteUserTx(tx *store.Tx, user string) error {
	deleted, err := tx.Exec(`DELETE FROM account_user WHERE id = $1`, user)
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	if deleted == 0 {
		return notFound("user", user)
	}
	if err := forgetRecoveryTx(tx, user); err != nil {
		return err
	}
	if _, err := tx.Exec(`DELETE FROM account_identity WHERE member = $1`, user); err != nil {
		return fmt.Errorf("delete identities: %w", err)
	}
	if err := errors.Join(endLinkTx(tx, user), forgetAcceptancesTx(tx, user), announcement.ForgetUserTx(tx, user)); err != nil {
		return err
	}
	return EndSessionsTx(tx, user)
}

// claimEmailTx makes concurrent claims of an email wait for each other, so that the later claims
// find the email taken instead of failing on the index.
func claimEmailTx(tx *store.Tx, email string) error {
	return tx.Serialize("account_user email " + email)
}

func emailTaken(email string) error {
	return fault.At(fault.InvalidRequest, "email",
		"Another user already signs in with %s. Use another address, or change that user.", clip(email))
}

// EmailTakenTx reports whether a user signs in with an email, in its canonical form.
func EmailTakenTx(tx *store.Tx, email string) (bool, error) {
	if err := claimEmailTx(tx, email); err != nil {
		return false, err
	}
	var users int
	if err := tx.QueryRow(`SELECT count(*) FROM account_user WHERE email = $1`, email).Scan(&users); err != nil {
		return false, fmt.Errorf("look for an email: %w", err)
	}
	return users > 0, nil
}
