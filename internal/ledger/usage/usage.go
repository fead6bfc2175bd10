// Package usage owns an account's view of its own use: balance, totals and the requested report.
//
// Invariant: the answer of one call is of one moment.
package usage

import (
	"context"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// parts are the groupings available to an account.
var parts = []spending.By{spending.ByDay, spending.ByKey, spending.ByModel, spending.ByEndpoint}

// AccountReader reads the usage of accounts.
type AccountReader struct{ db *store.DB }

// NewAccountReader returns the reader of a database.
func NewAccountReader(db *store.DB) *AccountReader { return &AccountReader{db} }

// Read returns balance and totals of an account, and the report requested by the parameters of a
// query (interface.md, Usage), or nil if they request none; get returns a parameter's value. Errors
// are ledger.ErrNoAccount, and a *fault.Error about wrong parameters.
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
