package ledger

import (
	"database/sql"
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
	_, err := tx.Exec(`INSERT INTO ledger_account (id, balance_nano, floor_nano, disabled, seq) VALUES ($1, 0, $2, 0, 0)`,
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

// numberedState is an account's state with the number of its newest movement.
type numberedState struct {
	state AccountState
	seq   int64
}

func accountsTx(tx *store.Tx, accounts []string) (map[string]numberedState, error) {
	rows, err := tx.Query(`SELECT id, balance_nano, (SELECT `+store.Sum("amount_nano")+` FROM ledger_hold
		WHERE account = ledger_account.id), floor_nano, disabled, seq FROM ledger_account WHERE `+tx.In("id", 1), store.List(accounts))
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

// Payment is an amount for an account. A negative amount is a take-back. A take-back may bring the
// balance below the floor. Then no request is admitted until the balance reaches the floor again.
type Payment struct {
	Amount money.Amount
	Note   string
	// Reference is the id of a payment. At most one movement of the installation has it, forever.
	// The empty reference belongs to no payment.
	Reference string
	// Trial marks a credit from the shop for a new customer. The kind of its entry is EntryTrial.
	Trial bool
	// Paid means that the customer has paid the amount, or got it back. See movement.SetPaidTx.
	Paid bool
}

// MoveResult is the result of MoveTx.
type MoveResult struct {
	Balance  money.Amount // after the movement
	Repeated bool         // an earlier transaction made the movement with this reference
	Low      *Low         // if not nil, the caller must announce it in the same transaction
}

// ReferenceError reports a reference that belongs to another movement.
type ReferenceError struct {
	Account   string // the account, amount and time of the other movement
	Amount    money.Amount
	CreatedMS int64
}

// Error implements error.
func (e *ReferenceError) Error() string {
	return fmt.Sprintf("the reference belongs to a movement of %s USD on account %s", e.Amount, e.Account)
}

// CreditTx is MoveTx without a reference, for callers that do not announce low balances. It returns
// the new balance.
func CreditTx(tx *store.Tx, account string, amount money.Amount, note string) (money.Amount, error) {
	m, err := MoveTx(tx, account, Payment{Amount: amount, Note: note})
	return m.Balance, err
}

// MoveTx changes an account's balance by a payment. A repetition with the reference, account and
// amount of an earlier movement returns the result of that movement and changes nothing. Errors are
// ErrNoAccount, ErrRange and *ReferenceError.
func MoveTx(tx *store.Tx, account string, p Payment) (MoveResult, error) {
	// The lock also writes to the log of PostgreSQL, so the commit of a repetition proves that the
	// earlier movement cannot be lost.
	state, seq, err := lockAccountTx(tx, account)
	if err != nil {
		return MoveResult{}, err
	}
	if m, err := repeatedTx(tx, account, p); err != nil || m.Repeated {
		return m, err
	}
	balance, err := money.Add(state.Balance, p.Amount)
	if err != nil || balance > money.Max || balance < -money.Max {
		return MoveResult{}, ErrRange
	}
	now, err := tx.NowMS()
	if err != nil {
		return MoveResult{}, err
	}
	kind := books.EntryCredit
	switch {
	case p.Trial:
		kind = books.EntryTrial
	case p.Amount < 0:
		kind = books.EntryTakeBack
	}
	inserted, err := tx.Exec(`INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, reference, created_ms, paid)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (reference) WHERE reference <> '' DO NOTHING`,
		id.New("ent_"), account, seq+1, kind, int64(p.Amount), int64(balance), p.Note, p.Reference, now, store.Bool(p.Paid))
	if err != nil {
		return MoveResult{}, fmt.Errorf("write the entry: %w", err)
	}
	if inserted == 0 { // a transaction on another account has used the reference since repeatedTx
		return repeatedTx(tx, account, p)
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET balance_nano = $1, seq = $2 WHERE id = $3`, int64(balance), seq+1, account); err != nil {
		return MoveResult{}, fmt.Errorf("credit the account: %w", err)
	}
	low, err := updateLevelTx(tx, account, state.Balance, balance)
	return MoveResult{Balance: balance, Low: low}, err
}

// repeatedTx returns the result of the earlier movement with the reference of p. Repeated is false if
// no movement has the reference. If the movement has another account or amount, the error is a
// *ReferenceError.
func repeatedTx(tx *store.Tx, account string, p Payment) (MoveResult, error) {
	if p.Reference == "" {
		return MoveResult{}, nil
	}
	m := MoveResult{Repeated: true}
	var old ReferenceError
	err := tx.QueryRow(selectReference, p.Reference).Scan(&old.Account, &old.Amount, &m.Balance, &old.CreatedMS)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return MoveResult{}, nil
	case err != nil:
		return MoveResult{}, fmt.Errorf("read the reference: %w", err)
	case old.Account != account || old.Amount != p.Amount:
		return MoveResult{}, &old
	}
	return m, nil
}

// selectReference repeats the condition of the index, so that both databases use the index.
const selectReference = `SELECT account, amount_nano, balance_nano, created_ms FROM ledger_entry
	WHERE reference = $1 AND reference <> ''`
