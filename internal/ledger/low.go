package ledger

import (
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Low is a drop of a balance below its account's level.
type Low = books.Low

// LowTx returns the level below which an account's balance is announced. set is false if the
// account has no level. It returns ErrNoAccount for an unknown account.
func LowTx(tx *store.Tx, account string) (level money.Amount, set bool, err error) {
	row, err := lowTx(tx, account)
	return row.Amount, row.Set, err
}

func lowTx(tx *store.Tx, account string) (books.Level, error) {
	var row books.Level
	found := false
	rows, err := tx.Query(`SELECT low_set, low_armed, low_nano FROM ledger_account WHERE id = $1`, account)
	if err != nil {
		return row, err
	}
	defer rows.Close()
	for rows.Next() {
		found = true
		var set, armed int64
		if err := rows.Scan(&set, &armed, (*int64)(&row.Amount)); err != nil {
			return row, err
		}
		row.Set, row.Armed = set != 0, armed != 0
	}
	if err := rows.Err(); err != nil || found {
		return row, err
	}
	return row, ErrNoAccount
}

// SetLowTx sets the level of an account, or removes it if level is nil. The level is armed if the
// balance is not below it. SetLowTx announces nothing. It returns ErrNoAccount for an unknown
// account.
func SetLowTx(tx *store.Tx, account string, level *money.Amount) error {
	state, _, err := lockAccountTx(tx, account)
	if err != nil {
		return err
	}
	row := books.Level{}
	if level != nil {
		row = books.Level{Set: true, Amount: *level, Armed: state.Balance >= *level}
	}
	// LevelChangesTx must not report a balance below the new level as a fall.
	if _, err := tx.Exec(`DELETE FROM ledger_armed WHERE account = $1`, account); err != nil {
		return fmt.Errorf("store the level of a balance: %w", err)
	}
	_, err = tx.Exec(`UPDATE ledger_account SET low_set = $1, low_nano = $2, low_armed = $3 WHERE id = $4`,
		store.Bool(row.Set), int64(row.Amount), store.Bool(row.Armed), account)
	return err
}

// updateLevelTx arms or disarms an account's level after a credit or a take-back. It returns the
// drop to announce, or nil.
func updateLevelTx(tx *store.Tx, account string, before, after money.Amount) (*Low, error) {
	row, err := lowTx(tx, account)
	if err != nil {
		return nil, err
	}
	drop := row.Drops(before, after)
	if !drop && !row.Rises(before, after) {
		return nil, nil
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET low_armed = $1 WHERE id = $2`, store.Bool(row.Armed), account); err != nil {
		return nil, fmt.Errorf("store the level of a balance: %w", err)
	}
	if !drop {
		return nil, nil
	}
	return &Low{Account: account, Balance: after, Level: row.Amount}, nil
}
