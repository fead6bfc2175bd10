package ledger

import (
	"fmt"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Low is a drop of a balance below the level that its account has set. It is
// told once a drop: a credit that brings the balance above the level arms it
// again (interface.md, States and transitions).
type Low struct {
	Account        string
	Balance, Level money.Amount
}

// lowRow is an account's level.
type lowRow struct {
	set, armed bool
	level      money.Amount
}

// drops tells whether a change of the balance is a drop that is to be told, and
// disarms the level then.
func (l *lowRow) drops(before, after money.Amount) bool {
	if !l.set || !l.armed || after >= before || after >= l.level {
		return false
	}
	l.armed = false
	return true
}

// rises arms the level when a credit brings the balance above it; true: it was
// not armed.
func (l *lowRow) rises(before, after money.Amount) bool {
	if !l.set || l.armed || after <= before || after <= l.level {
		return false
	}
	l.armed = true
	return true
}

// LowTx returns the level below which an account wants to hear of its balance;
// false: it has set none. ErrNoAccount.
func LowTx(tx *store.Tx, account string) (level money.Amount, set bool, err error) {
	row, err := lowTx(tx, account)
	return row.level, row.set, err
}

func lowTx(tx *store.Tx, account string) (lowRow, error) {
	var row lowRow
	found := false
	rows, err := tx.Query(`SELECT low_set, low_armed, low_nano FROM ledger_account WHERE id = $1`, account)
	if err != nil {
		return row, err
	}
	defer rows.Close()
	for rows.Next() {
		found = true
		var set, armed int64
		if err := rows.Scan(&set, &armed, (*int64)(&row.level)); err != nil {
			return row, err
		}
		row.set, row.armed = set != 0, armed != 0
	}
	if err := rows.Err(); err != nil || found {
		return row, err
	}
	return row, ErrNoAccount
}

// SetLowTx sets the level, or with nil removes it. Setting arms it where the
// balance is at or above it, and tells nothing. ErrNoAccount.
func SetLowTx(tx *store.Tx, account string, level *money.Amount) error {
	state, _, err := lockAccountTx(tx, account)
	if err != nil {
		return err
	}
	row := lowRow{}
	if level != nil {
		row = lowRow{set: true, level: *level, armed: state.Balance >= *level}
	}
	_, err = tx.Exec(`UPDATE ledger_account SET low_set = $1, low_nano = $2, low_armed = $3 WHERE id = $4`,
		flag(row.set), int64(row.level), flag(row.armed), account)
	return err
}

// moveTx arms or disarms an account's level after a credit or a take-back, and
// returns the drop that is to be told; nil: none.
func moveTx(tx *store.Tx, account string, before, after money.Amount) (*Low, error) {
	row, err := lowTx(tx, account)
	if err != nil {
		return nil, err
	}
	drop := row.drops(before, after)
	if !drop && !row.rises(before, after) {
		return nil, nil
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET low_armed = $1 WHERE id = $2`, flag(row.armed), account); err != nil {
		return nil, fmt.Errorf("note the level of a balance: %w", err)
	}
	if !drop {
		return nil, nil
	}
	return &Low{Account: account, Balance: after, Level: row.level}, nil
}
