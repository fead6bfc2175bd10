package topup

import (
	"fmt"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// ReversalKind is the kind of a reversal.
type ReversalKind string

// The kinds of a reversal.
const (
	Refund  ReversalKind = "refund"
	Dispute ReversalKind = "dispute"
)

// Reversal is a refund or a dispute of a paid top-up.
type Reversal struct {
	ID      string // refund_… or dispute_…
	Topup   string
	Account string
	Kind    ReversalKind
	// Object is the provider's id of the refund or dispute. It is empty for a refund that the provider
	// has not listed yet or lists without an id, or that was paid back by hand.
	Object string
	Minor  int64 // of the payment
	// Active is true while the customer has the money back and the credit is taken back.
	Active bool
	// Moves counts the reversal's movements in the ledger.
	Moves int64
	// Taken is the credit that the reversal has taken and not given back. If reversals of a payment
	// overlap, it can be less than the reversal's own part.
	Taken     money.Amount
	Requested bool   // an operator's refund without the provider's confirmation
	called    bool   // the provider was asked to pay back the requested refund, perhaps without an answer
	Reason    string // by the operator
	CreatedMS int64
}

// reference returns the reference of the reversal's next movement in the ledger.
func (c Reversal) reference(t Topup) string {
	base := t.Provider + ":" + c.Object
	if c.Object == "" || c.Reason != "" { // an operator's refund exists before the provider's id
		base = t.Provider + ":" + c.ID
	}
	if c.Moves == 0 {
		return base
	}
	return fmt.Sprintf("%s:%d", base, c.Moves+1)
}

// The values of the column requested, besides 0.
const (
	requestedRefund = 1
	calledRefund    = 2
)

// requestedColumn returns the value of the column requested.
func (c Reversal) requestedColumn() int {
	switch {
	case !c.Requested:
		return 0
	case c.called:
		return calledRefund
	}
	return requestedRefund
}

const reversalColumns = `id, topup, account, kind, object, minor, active, moves, taken_nano, requested, reason, created_ms`

func scanReversal(row store.Row) (c Reversal, err error) {
	var active, requested int64
	err = row.Scan(&c.ID, &c.Topup, &c.Account, &c.Kind, &c.Object, &c.Minor, &active, &c.Moves, &c.Taken, &requested, &c.Reason,
		&c.CreatedMS)
	c.Active, c.Requested, c.called = active != 0, requested != 0, requested == calledRefund
	return c, err
}

// ReversalsTx returns the refunds and disputes of a top-up, in the order of their creation.
func ReversalsTx(tx *store.Tx, topup string) ([]Reversal, error) {
	list, err := store.Collect(tx, scanReversal,
		`SELECT `+reversalColumns+` FROM topup_reversal WHERE topup = $1 ORDER BY created_ms, id`, topup)
	if err != nil {
		return nil, fmt.Errorf("read the refunds of a top-up: %w", err)
	}
	return list, nil
}

// saveReversalTx inserts or updates a reversal.
func saveReversalTx(tx *store.Tx, c Reversal) error {
	_, err := tx.Exec(`INSERT INTO topup_reversal (`+reversalColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (id) DO UPDATE SET object = excluded.object, minor = excluded.minor, active = excluded.active, moves = excluded.moves,
		taken_nano = excluded.taken_nano, requested = excluded.requested`,
		c.ID, c.Topup, c.Account, string(c.Kind), c.Object, c.Minor, store.Bool(c.Active), c.Moves, int64(c.Taken),
		c.requestedColumn(), c.Reason, c.CreatedMS)
	if err != nil {
		return fmt.Errorf("save a refund: %w", err)
	}
	return nil
}
