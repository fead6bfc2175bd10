package ledger

import (
	"context"
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Totals are counts of ended requests (interface.md, Usage).
type Totals = books.Totals

// ModelTotals are the totals of one model.
type ModelTotals struct {
	Model string
	Totals
	Quantities measure.Totals
}

// Usage is the content of GET /v1/usage.
type Usage struct {
	Balance money.Amount
	Total   Totals
	// Today holds the totals of the current UTC day, without token counts.
	Today   Totals
	ByModel []ModelTotals
}

// usageText sums the days of an account's series by model and unit.
var usageText = func() string {
	sums := ""
	for _, column := range []string{"cost_nano", "requests", "billed", "failed", "prompt_tokens", "completion_tokens", "quantity"} {
		sums += ", " + store.Sum("d."+column)
	}
	for _, column := range []string{"cost_nano", "requests", "billed", "failed"} {
		sums += ", " + store.Sum("CASE WHEN d.day = $1 THEN d."+column+" ELSE 0 END")
	}
	return `SELECT s.model, d.unit` + sums + ` FROM ledger_series s JOIN ledger_day d ON d.series = s.id WHERE s.account = $2
		GROUP BY s.model, d.unit ORDER BY s.model`
}()

// UsageTx reads an account's totals. It also counts running jobs, because a job gets its receipt only
// when it ends. It returns ErrNoAccount for an unknown account.
func UsageTx(tx *store.Tx, account string) (Usage, error) {
	states, err := AccountsTx(tx, []string{account})
	if err != nil {
		return Usage{}, err
	}
	state, ok := states[account]
	if !ok {
		return Usage{}, ErrNoAccount
	}
	now, err := tx.NowMS()
	if err != nil {
		return Usage{}, err
	}
	u := Usage{Balance: state.Balance}
	current := books.DayOf(now)
	rows, err := tx.Query(usageText, current, account)
	if err != nil {
		return Usage{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var m ModelTotals
		var today Totals
		var q measure.Quantity
		if err := rows.Scan(&m.Model, &q.Unit, &m.Cost, &m.Requests, &m.Billed, &m.Failed, &m.Prompt, &m.Completion, &q.N,
			&today.Cost, &today.Requests, &today.Billed, &today.Failed); err != nil {
			return Usage{}, err
		}
		sum := u.model(m.Model)
		sum.Totals, sum.Quantities = sum.Plus(m.Totals), sum.Quantities.Plus(measure.Of(q.Unit, m.Billed, q.N))
		u.Total = u.Total.Plus(m.Totals)
		u.Today = u.Today.Plus(today)
	}
	if err := rows.Err(); err != nil {
		return Usage{}, err
	}
	return u, u.addRunningTx(tx, account, current)
}

// addRunningTx counts the running jobs of an account.
func (u *Usage) addRunningTx(tx *store.Tx, account string, today int64) error {
	rows, err := tx.Query(`SELECT model, day, COUNT(*) FROM ledger_hold WHERE account = $1 AND job <> '' GROUP BY model, day`, account)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var model string
		var day, n int64
		if err := rows.Scan(&model, &day, &n); err != nil {
			return err
		}
		u.Total.Requests += n
		if day == today {
			u.Today.Requests += n
		}
		u.model(model).Requests += n
	}
	return rows.Err()
}

// model returns the totals of a model, and adds the model if it is new.
func (u *Usage) model(name string) *ModelTotals {
	i := slices.IndexFunc(u.ByModel, func(m ModelTotals) bool { return m.Model == name })
	if i < 0 {
		i = len(u.ByModel)
		u.ByModel = append(u.ByModel, ModelTotals{Model: name})
	}
	return &u.ByModel[i]
}

// ReadUsage returns an account's totals, and the report requested by the parameters of a query
// (interface.md, Usage). get returns a parameter's value; if get is nil, there is no report. All
// figures are of one moment. Errors are ErrNoAccount, and a *fault.Error about wrong parameters.
func (l *Ledger) ReadUsage(ctx context.Context, account string, get func(name string) string) (
	u Usage, report *spending.Breakdown, err error,
) {
	err = l.db.View(ctx, func(tx *store.Tx) error {
		if u, err = UsageTx(tx, account); err != nil || get == nil {
			return err
		}
		now, err := tx.NowMS()
		if err != nil {
			return err
		}
		q, err := spending.ParseQuery(get, []spending.By{spending.ByDay, spending.ByKey, spending.ByModel, spending.ByEndpoint}, now)
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
