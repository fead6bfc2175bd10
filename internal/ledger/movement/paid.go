package movement

import (
	"database/sql"
	"errors"
	"fmt"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// ErrNoEntry means that there is no credit or take-back with this id.
var ErrNoEntry = errors.New("no credit has this id")

// CreditTx locks and returns a credit or take-back, and its account. It returns ErrNoEntry for an
// unknown id.
func CreditTx(tx *store.Tx, id string) (e Entry, account string, err error) {
	if err := tx.Lock("ledger_entry", "id", id); err != nil {
		return e, "", err
	}
	return FindCreditTx(tx, id)
}

// FindCreditTx is CreditTx without the lock.
func FindCreditTx(tx *store.Tx, id string) (e Entry, account string, err error) {
	e.ID = id
	err = tx.QueryRow(`SELECT account, kind, amount_nano, balance_nano, note, reference, created_ms, paid FROM ledger_entry
		WHERE id = $1`, id).
		Scan(&account, &e.Kind, &e.Amount, &e.Balance, &e.Note, &e.Reference, &e.CreatedMS, &e.Paid)
	if errors.Is(err, sql.ErrNoRows) {
		return e, "", ErrNoEntry
	}
	if err != nil {
		return e, "", fmt.Errorf("read a credit: %w", err)
	}
	return e, account, nil
}

// SetPaidTx marks a credit or take-back as paid or unpaid. The mark changes no balance.
func SetPaidTx(tx *store.Tx, id string, paid bool) error {
	if _, err := tx.Exec(`UPDATE ledger_entry SET paid = $1 WHERE id = $2`, store.Bool(paid), id); err != nil {
		return fmt.Errorf("mark a credit as paid: %w", err)
	}
	return nil
}

// CreditTotals are sums of an account's credits, less the credit taken back.
type CreditTotals struct {
	Paid   money.Amount // of the period, paid
	Unpaid money.Amount // of the period, not paid, without trial credits
	Trial  money.Amount // of the period
	Due    money.Amount // unpaid until the end of the period
	Later  money.Amount // of all kinds since the end of the period
}

// TotalsTx returns the sums of all accounts with credits, by account. The period is in Unix milliseconds,
// sinceMS inclusive, untilMS exclusive.
func TotalsTx(tx *store.Tx, sinceMS, untilMS int64) (map[string]CreditTotals, error) {
	totals := map[string]CreditTotals{}
	sum := func(condition string) string {
		return store.Sum("CASE WHEN " + condition + " THEN amount_nano ELSE 0 END")
	}
	const inside = "created_ms >= $1 AND created_ms < $2 AND "
	err := tx.Each(func(row store.Row) error {
		var account string
		var t CreditTotals
		err := row.Scan(&account, &t.Paid, &t.Unpaid, &t.Trial, &t.Due, &t.Later)
		totals[account] = t
		return err
	}, `SELECT account, `+sum(inside+"paid = 1")+`, `+sum(inside+"paid = 0 AND kind <> 'trial'")+`,
		`+sum(inside+"paid = 0 AND kind = 'trial'")+`, `+sum("created_ms < $2 AND paid = 0 AND kind <> 'trial'")+`,
		`+sum("created_ms >= $2")+` FROM ledger_entry GROUP BY account`, sinceMS, untilMS)
	if err != nil {
		return nil, fmt.Errorf("add up the credits: %w", err)
	}
	return totals, nil
}
