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
	maxOwnKeys  = 1000 // undeleted keys; also keys created within keyWindow, because rows of deleted keys stay
	maxOwnUsers = 100
	keyWindow   = 24 * time.Hour
)

// Limit on attempts of an account's users to add other users within addWindow. There is a limit
// because each answer reveals whether a user of any account has the email.
const (
	maxAdds   = 20
	addWindow = 24 * time.Hour
)

// CreateOwnKeyTx is CreateKeyTx for a user of the account. It returns a 400 if the account has 1,000
// keys, or created 1,000 keys within a day.
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

// CreateOwnUserTx is CreateUserTx for a user of the account. It returns a 400 if the account has 100
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

// CountUserAdd records in its own transaction that a user of an account is about to add another
// user. After 20 calls within a day, it returns a 429 with the time to wait.
func (s *SignIns) CountUserAdd(ctx context.Context, account string) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := recordAttemptTx(tx, []subject{{name: "adds to " + account, maxCount: maxAdds, extraWindow: addWindow - attemptWindow,
			message: "The users of this account have tried to add 20 others within a day. An operator of this service can add more now."}})
		return err
	})
}

// checkCountTx returns an error with a message if an account already has maxCount rows. query
// selects the rows; its arguments are account, maxCount and args. The account must be locked, so
// that concurrent calls wait for each other.
func checkCountTx(tx *store.Tx, account, query string, maxCount int, message string, args ...any) error {
	var n int
	args = append([]any{account, maxCount}, args...)
	if err := tx.QueryRow(`SELECT count(*) FROM (`+query+` LIMIT $2) AS counted`, args...).Scan(&n); err != nil {
		return fmt.Errorf("count an account's keys or users: %w", err)
	}
	if n < maxCount {
		return nil
	}
	return fault.New(fault.InvalidRequest, message, maxCount)
}
