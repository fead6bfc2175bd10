package account

import (
	"context"
	"fmt"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// Limits for keys and users created by an account's own users, so that the console cannot fill the
// database. Operators and imports are not limited, but their keys and users count.
const (
	maxOwnKeys  = 1000 // undeleted keys; also keys created within keyWindow, since rows of deleted keys stay
	maxOwnUsers = 100
	keyWindow   = 24 * time.Hour
)

// Limit on the users that an account's own users may try to add within addWindow. Each answer
// reveals whether a user of any account has the email.
const (
	maxAdds   = 20
	addWindow = 24 * time.Hour
)

// CreateOwnKeyTx is CreateKeyTx by a user of the account. It returns 400 if the account has 1,000
// keys, or created that many within a day.
func CreateOwnKeyTx(tx *store.Tx, account string, s KeySettings) (Key, string, error) {
	now, err := tx.NowMS()
	if err != nil {
		return Key{}, "", err
	}
	if err := tx.Lock("account", "id", account); err != nil {
		return Key{}, "", err
	}
	if err := checkCountTx(tx, account, `SELECT 1 FROM api_key WHERE account = $1 AND deleted = 0`, maxOwnKeys,
		"This account has %d keys, as many as its users can make. Delete those that nothing uses, or ask who runs this service."); err != nil {
		return Key{}, "", err
	}
	if err := checkCountTx(tx, account, `SELECT 1 FROM api_key WHERE account = $1 AND created_ms > $3`, maxOwnKeys,
		"%d keys of this account were made within a day, deleted ones too, as many as its users can make. Try again later, or ask "+
			"who runs this service.", now-keyWindow.Milliseconds()); err != nil {
		return Key{}, "", err
	}
	return CreateKeyTx(tx, account, s)
}

// CreateOwnUserTx is CreateUserTx by a user of the account. It returns 400 if the account has 100
// users.
func CreateOwnUserTx(tx *store.Tx, account string, s SignIn) (User, error) {
	if err := tx.Lock("account", "id", account); err != nil {
		return User{}, err
	}
	if err := checkCountTx(tx, account, `SELECT 1 FROM account_user WHERE account = $1`, maxOwnUsers,
		"This account has %d users, as many as its users can add. Delete those who sign in no more, or ask who runs this service."); err != nil {
		return User{}, err
	}
	return CreateUserTx(tx, account, s)
}

// CountUserAdd records that a user of an account is about to add another user, whatever the result,
// in its own transaction. After 20 within a day, it returns 429 with the time to wait.
func (e *SignIns) CountUserAdd(ctx context.Context, account string) error {
	return e.db.Update(ctx, func(tx *store.Tx) error {
		_, err := recordAttemptTx(tx, []subject{{name: "adds to " + account, maxCount: maxAdds, longer: addWindow - attemptWindow,
			full: "The users of this account have tried to add 20 others within a day. An operator of this service can add more now."}})
		return err
	})
}

// checkCountTx returns an error with the message full if an account already has maxCount rows. The
// rows are those of the statement rows with the arguments account, maxCount and args. The account
// must be locked, so that concurrent calls wait for each other.
func checkCountTx(tx *store.Tx, account, rows string, maxCount int, full string, args ...any) error {
	var n int
	args = append([]any{account, maxCount}, args...)
	if err := tx.QueryRow(`SELECT count(*) FROM (`+rows+` LIMIT $2) AS counted`, args...).Scan(&n); err != nil {
		return fmt.Errorf("count what an account has: %w", err)
	}
	if n < maxCount {
		return nil
	}
	return fault.New(fault.InvalidRequest, full, maxCount)
}
