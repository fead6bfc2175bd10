package account

import (
	"fmt"

	"tollgate/internal/fault"
	"tollgate/internal/store"
)

// What an account's own users may make, so that nobody fills the database from the console.
// Operators and imports are not bound, but theirs count.
const (
	maxOwnKeys  = 1000 // that are not deleted
	maxOwnUsers = 100
)

// CreateOwnKeyTx is CreateKeyTx by a user of the account: 400 once it has 1,000 keys.
func CreateOwnKeyTx(tx *store.Tx, account string, s KeySettings) (Key, string, error) {
	if err := roomTx(tx, account, `SELECT 1 FROM api_key WHERE account = $1 AND deleted = 0`, maxOwnKeys,
		"This account has %d keys, as many as its users can make. Delete those that nothing uses, or ask who runs this service."); err != nil {
		return Key{}, "", err
	}
	return CreateKeyTx(tx, account, s)
}

// CreateOwnUserTx is CreateUserTx by a user of the account: 400 once it has 100 users.
func CreateOwnUserTx(tx *store.Tx, account string, s SignIn) (User, error) {
	if err := roomTx(tx, account, `SELECT 1 FROM account_user WHERE account = $1`, maxOwnUsers,
		"This account has %d users, as many as its users can add. Delete those who sign in no more, or ask who runs this service."); err != nil {
		return User{}, err
	}
	return CreateUserTx(tx, account, s)
}

// roomTx refuses, in the words of full, one more of what of gives a row each, where the
// account has as many as most. Those who ask at the same moment wait for each other.
func roomTx(tx *store.Tx, account, of string, most int, full string) error {
	if err := tx.Lock("account", "id", account); err != nil {
		return err
	}
	var there int
	if err := tx.QueryRow(`SELECT count(*) FROM (`+of+` LIMIT $2) AS counted`, account, most).Scan(&there); err != nil {
		return fmt.Errorf("count what an account has: %w", err)
	}
	if there < most {
		return nil
	}
	return fault.New(fault.InvalidRequest, full, most)
}
