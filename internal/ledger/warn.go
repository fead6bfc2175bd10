package ledger

import (
	"fmt"
	"slices"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// The functions of this file find low balances and nearly used budgets for warnings to customers. They
// read the tables of the books from time to time, so that warnings cost admissions and settlements nothing.
// A search in pages comes first, in a read-only transaction. For a page with something to report, the caller
// reads the page again in a transaction that also records and sends the warnings, under one lock over all
// nodes.

// LevelChange is an account whose balance has crossed its level since the last comparison.
type LevelChange struct {
	Low
	IsLow  bool  // the balance is below the level now
	Credit int64 // number of the account's newest credit; a balance rises by credits only
}

const levelText = `CASE WHEN a.low_set = 1 THEN a.low_nano ELSE CAST($1 AS BIGINT) END`

const levelChangesText = `SELECT a.id, a.balance_nano, ` + levelText + `, r.account IS NOT NULL,
		(SELECT COALESCE(MAX(e.seq), 0) FROM ledger_entry e WHERE e.account = a.id AND e.amount_nano > 0)
	FROM ledger_account a LEFT JOIN ledger_armed r ON r.account = a.id
	WHERE (a.low_set = 1 OR $1 > 0) AND (a.balance_nano >= ` + levelText + `) <> (r.account IS NOT NULL) AND a.id > $2 ORDER BY a.id LIMIT $3`

// LevelChangesTx returns up to limit accounts in the order of their ids, beginning after the id after.
// fallback is the level of accounts without a level of their own; 0 means no level. An account that has
// never reached its level, such as a new account, is not low.
func LevelChangesTx(tx *store.Tx, fallback money.Amount, after string, limit int) ([]LevelChange, error) {
	list, err := store.Collect(tx, func(row store.Row) (c LevelChange, err error) {
		err = row.Scan(&c.Account, &c.Balance, &c.Level, &c.IsLow, &c.Credit)
		return c, err
	}, levelChangesText, int64(fallback), after, limit)
	if err != nil {
		return nil, fmt.Errorf("compare balances with their levels: %w", err)
	}
	return list, nil
}

// RecordLevelChangesTx records that changes are reported, so that LevelChangesTx does not return them
// again.
func RecordLevelChangesTx(tx *store.Tx, changes []LevelChange) error {
	var low, armed []string
	for _, c := range changes {
		if c.IsLow {
			low = append(low, c.Account)
		} else {
			armed = append(armed, c.Account)
		}
	}
	_, err := tx.Exec(`DELETE FROM ledger_armed WHERE `+tx.In("account", 1), store.List(low))
	if err == nil {
		_, err = tx.Exec(`INSERT INTO ledger_armed (account) SELECT id FROM ledger_account WHERE `+tx.In("id", 1)+`
			ON CONFLICT (account) DO NOTHING`, store.List(armed))
	}
	if err != nil {
		return fmt.Errorf("record the levels of balances: %w", err)
	}
	return nil
}

// BudgetUse is a key that has used much of its daily budget or of its total limit.
type BudgetUse struct {
	Key, Account string
	Daily        bool // the daily budget, else the total limit
	UsedUp       bool // requests are refused, else the key has spent at least BudgetShare
	Spent, Limit money.Amount

	// reported is the stage of the last warning: 0 for none, 1 for BudgetShare, and 2 for UsedUp.
	reported int64
	// free is the account's balance less its floor. Open holds are not subtracted.
	free money.Amount
}

// BudgetShare is the spent part of a budget, in percent, at which BudgetUsesTx returns a key.
const BudgetShare = 80

// recentMS bounds the time since the last use of a compared key. It leaves time for the key's jobs to
// end. Other keys have spent nothing since the last comparison; keys with refused requests are in
// BudgetQuery.Refused.
const recentMS = 60 * 60 * 1000

// budgetText selects the keys of one kind of budget: $1 is the day, $2 the earliest last use, $3 the
// last key of the page before, $4 the length of the page, and $5 the refused keys. A warning about a daily
// budget is over at the end of its day. A warning about a total limit is over when the limit changes.
func budgetText(tx *store.Tx, daily bool) string {
	limit, spent, join, over := "k.total_limit_nano", "k.spent_nano", "", "w.limit_nano <> k.total_limit_nano"
	if daily {
		limit, spent, over = "k.daily_budget_nano", "l.spent_nano", "w.day <> $1"
		join = "JOIN ledger_limit l ON l.subject = k.id AND l.day = $1"
	}
	return fmt.Sprintf(`SELECT k.id, k.account, %[2]s, %[1]s, a.balance_nano - a.floor_nano,
			CASE WHEN w.key IS NULL OR %[4]s THEN 0 ELSE w.stage END
		FROM ledger_key k %[3]s JOIN ledger_account a ON a.id = k.account
		LEFT JOIN ledger_budget_warning w ON w.key = k.id AND w.daily = %[5]d
		WHERE %[1]s > 0 AND k.closed = 0 AND k.disabled = 0 AND (k.last_used_ms >= $2 OR %[7]s) AND $1 >= 0
			AND %[2]s >= %[1]s - %[1]s / 100 * %[6]d AND (w.key IS NULL OR %[4]s OR w.stage < 2) AND k.id > $3 ORDER BY k.id LIMIT $4`,
		limit, spent, join, over, store.Bool(daily), 100-BudgetShare, tx.In("k.id", 5))
}

// BudgetQuery selects the keys of BudgetUsesTx.
type BudgetQuery struct {
	NowMS int64
	Daily bool
	// Refused are the keys whose requests were refused recently, from RefusedKeysTx.
	Refused []string
	After   string // the last key of the page before
	Limit   int
}

// BudgetUsesTx returns the keys that need a warning, and the last examined key, or "" after the last
// page. A key has used up its budget if all of the budget is spent, or if requests were refused and the
// rest of the budget is less than the account's balance above the floor.
func BudgetUsesTx(tx *store.Tx, q BudgetQuery) (uses []BudgetUse, last string, err error) {
	list, err := store.Collect(tx, func(row store.Row) (u BudgetUse, err error) {
		u.Daily = q.Daily
		err = row.Scan(&u.Key, &u.Account, &u.Spent, &u.Limit, &u.free, &u.reported)
		return u, err
	}, budgetText(tx, q.Daily), books.DayOf(q.NowMS), q.NowMS-recentMS, q.After, q.Limit, store.List(q.Refused))
	if err != nil {
		return nil, "", fmt.Errorf("compare keys with their budgets: %w", err)
	}
	for _, u := range list {
		left := u.Limit - u.Spent
		u.UsedUp = left <= 0 || left < u.free && slices.Contains(q.Refused, u.Key)
		if u.reported == 0 || u.UsedUp && u.reported == 1 {
			uses = append(uses, u)
		}
	}
	if len(list) == q.Limit {
		last = list[len(list)-1].Key
	}
	return uses, last, nil
}

// RecordBudgetUsesTx records that uses are reported, so that BudgetUsesTx does not return them again.
func RecordBudgetUsesTx(tx *store.Tx, nowMS int64, uses []BudgetUse) error {
	q := tx.Batch()
	for _, u := range uses {
		stage := 1 + store.Bool(u.UsedUp)
		q.Exec(nil, `INSERT INTO ledger_budget_warning (key, daily, stage, day, limit_nano) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (key, daily) DO UPDATE SET stage = excluded.stage, day = excluded.day, limit_nano = excluded.limit_nano`,
			u.Key, store.Bool(u.Daily), stage, books.DayOf(nowMS), int64(u.Limit))
	}
	if err := tx.Run(q); err != nil {
		return fmt.Errorf("record warnings about budgets: %w", err)
	}
	return nil
}

// RefusedKeysTx returns the keys of the requests since a time that were refused with insufficient_quota.
func RefusedKeysTx(tx *store.Tx, sinceMS int64) ([]string, error) {
	return requestlog.KeysWithCodeTx(tx, string(fault.InsufficientQuota), sinceMS)
}
