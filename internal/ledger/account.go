package ledger

import (
	"errors"
	"fmt"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

var (
	// ErrNoAccount reports an unknown account.
	ErrNoAccount = errors.New("no such account")
	// ErrNoKey reports an unknown or closed key.
	ErrNoKey = errors.New("no such key")
	// ErrRange reports a balance outside the exact range.
	ErrRange = errors.New("the balance would leave the range of plus or minus 1000000000 USD")
)

// AccountState is the money side of an account.
type AccountState struct {
	Balance  money.Amount // credits less charges
	Held     money.Amount // by running requests
	Floor    money.Amount // the lowest balance allowed: zero or negative
	Disabled bool
}

// AccountChange changes the fields that are not nil.
type AccountChange struct {
	Floor    *money.Amount
	Disabled *bool
}

// OpenAccountTx opens an account with a balance of zero.
func OpenAccountTx(tx *store.Tx, account string, floor money.Amount) error {
	_, err := tx.Exec(`INSERT INTO ledger_account (id, balance_nano, held_nano, floor_nano, disabled, seq) VALUES ($1, 0, 0, $2, 0, 0)`,
		account, int64(floor))
	return err
}

// ChangeAccountTx changes an account's floor or disables it. Running requests go on; the next
// admission sees the change.
func ChangeAccountTx(tx *store.Tx, account string, c AccountChange) error {
	state, _, err := lockAccountTx(tx, account)
	if err != nil {
		return err
	}
	if c.Floor != nil {
		state.Floor = *c.Floor
	}
	if c.Disabled != nil {
		state.Disabled = *c.Disabled
	}
	_, err = tx.Exec(`UPDATE ledger_account SET floor_nano = $1, disabled = $2 WHERE id = $3`, int64(state.Floor),
		store.Bool(state.Disabled), account)
	return err
}

// lockAccountTx locks an account's row and reads it. The lock covers all rows of the account.
func lockAccountTx(tx *store.Tx, account string) (state AccountState, seq int64, err error) {
	if err := tx.Lock("ledger_account", "id", account); err != nil {
		return state, 0, err
	}
	states, err := accountsTx(tx, []string{account})
	if err != nil {
		return state, 0, err
	}
	row, ok := states[account]
	if !ok {
		return state, 0, ErrNoAccount
	}
	return row.state, row.seq, nil
}

// AccountsTx returns the states of the existing accounts.
func AccountsTx(tx *store.Tx, accounts []string) (map[string]AccountState, error) {
	rows, err := accountsTx(tx, accounts)
	if err != nil {
		return nil, err
	}
	states := make(map[string]AccountState, len(rows))
	for account, row := range rows {
		states[account] = row.state
	}
	return states, nil
}

type numberedState struct {
	state AccountState
	seq   int64
}

func accountsTx(tx *store.Tx, accounts []string) (map[string]numberedState, error) {
	rows, err := tx.Query(`SELECT id, balance_nano, held_nano, floor_nano, disabled, seq FROM ledger_account WHERE `+tx.In("id", 1),
		store.List(accounts))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	states := make(map[string]numberedState, len(accounts))
	for rows.Next() {
		var account string
		var r numberedState
		var disabled int64
		if err := rows.Scan(&account, &r.state.Balance, &r.state.Held, &r.state.Floor, &disabled, &r.seq); err != nil {
			return nil, err
		}
		r.state.Disabled = disabled != 0
		states[account] = r
	}
	return states, rows.Err()
}

// CreditTx adds an amount to an account's balance and returns the new balance. A negative amount is
// a take-back; it may bring the balance below the floor, and then nothing is admitted until the
// balance is above the floor again. Errors are ErrNoAccount and ErrRange.
func CreditTx(tx *store.Tx, account string, amount money.Amount, note string) (money.Amount, error) {
	balance, _, err := MoveTx(tx, account, amount, note)
	return balance, err
}

// MoveTx is CreditTx for callers that announce low balances. If the returned Low is not nil, the
// caller must announce it in the same transaction.
func MoveTx(tx *store.Tx, account string, amount money.Amount, note string) (money.Amount, *Low, error) {
	state, seq, err := lockAccountTx(tx, account)
	if err != nil {
		return 0, nil, err
	}
	balance, err := money.Add(state.Balance, amount)
	if err != nil || balance > money.Max || balance < -money.Max {
		return 0, nil, ErrRange
	}
	now, err := tx.NowMS()
	if err != nil {
		return 0, nil, err
	}
	kind := books.EntryCredit
	if amount < 0 {
		kind = books.EntryTakeBack
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET balance_nano = $1, seq = $2,
		parted_seq = CASE WHEN parted_seq = seq THEN $2 ELSE parted_seq END WHERE id = $3`, int64(balance), seq+1, account); err != nil {
		return 0, nil, fmt.Errorf("credit the account: %w", err)
	}
	_, err = tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, month, amount_nano, balance_nano, note, created_ms)
		VALUES ($1, $2, $3, $4, 0, $5, $6, $7, $8)`, id.New("ent_"), account, seq+1, kind, int64(amount), int64(balance), note, now)
	if err != nil {
		return 0, nil, fmt.Errorf("write the entry: %w", err)
	}
	low, err := updateLevelTx(tx, account, state.Balance, balance)
	return balance, low, err
}
