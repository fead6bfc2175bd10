// Package usage owns what an account is told of its own use: balance and totals, and
// with them the report that it asks for.
//
// Invariant: what one call answers is of one moment.
package usage

import (
	"context"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// parts are what an account may see its usage by.
var parts = []spending.By{spending.ByDay, spending.ByKey, spending.ByModel, spending.ByEndpoint}

// AccountReader reads the usage of accounts.
type AccountReader struct{ db *store.DB }

// NewAccountReader returns the reader of a database.
func NewAccountReader(db *store.DB) *AccountReader { return &AccountReader{db} }

// Read returns balance and totals of an account, and the report that the parameters
// of a query ask for, which get reads (interface.md, Usage); nil: no report. Errors:
// ledger.ErrNoAccount, and a *fault.Error that says what is wrong with the parameters.
func (r *AccountReader) Read(ctx context.Context, account string, get func(name string) string) (
	u ledger.Usage, report *spending.Breakdown, err error,
) {
	err = r.db.View(ctx, func(tx *store.Tx) error {
		if u, err = ledger.UsageTx(tx, account); err != nil || get == nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		q, err := spending.Ask(get, parts, now)
		if err != nil {
			return err
		}
		q.Account = account
		found, err := spending.TableTx(tx, q, false)
		report = &found
		return err
	})
	return u, report, err
}
