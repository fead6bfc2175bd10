package ledger

import (
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// readDays adds the statements that read the stored figures of today for rows of another day. It
// returns false if there are no such rows.
func (b *batch) readDays(q *store.Batch, db *store.DB) bool {
	today := books.DayOf(b.NowMS)
	var keys, accounts []string
	for _, k := range b.Keys {
		if k.Day != today {
			keys = append(keys, k.ID)
		}
	}
	for k, f := range b.Free {
		if f.Day != today {
			accounts = append(accounts, k.Account)
		}
	}
	if len(keys) > 0 {
		q.Query(b.scanKeyDay, `SELECT key, day, spent_nano, held_nano FROM ledger_key_day WHERE `+db.In("key", 1)+` AND day = $2`,
			store.List(distinct(keys)), today)
	}
	if len(accounts) > 0 {
		q.Query(b.scanFreeDay, `SELECT account, model, day, used FROM ledger_free_day WHERE `+db.In("account", 1)+` AND day = $2`,
			store.List(distinct(accounts)), today)
	}
	return len(keys)+len(accounts) > 0
}

func (b *batch) scanKeyDay(row store.Row) error {
	var k books.KeyDay
	var a books.DaySums
	err := row.Scan(&k.Key, &k.Day, (*int64)(&a.Spent), (*int64)(&a.Held))
	b.Days.Keys[k] = a
	return err
}

func (b *batch) scanFreeDay(row store.Row) error {
	var k books.UsageKey
	var a books.DaySums
	err := row.Scan(&k.Account, &k.Model, &k.Day, &a.Used)
	b.Days.Free[k] = a
	return err
}

// writeDays adds the statements that change the stored figures of other days (books.Days).
func (b *batch) writeDays(q *store.Batch, db *store.DB) {
	for k := range b.Days.KeyDeletes {
		q.Exec(nil, `DELETE FROM ledger_key_day WHERE key = $1 AND day = $2`, k.Key, k.Day)
	}
	for k, a := range b.Days.KeyAdds {
		if a.Create {
			q.Exec(nil, `INSERT INTO ledger_key_day (key, day, spent_nano, held_nano) VALUES ($1, $2, $3, $4)
				ON CONFLICT (key, day) DO UPDATE SET `+store.Add("ledger_key_day", "spent_nano", "held_nano"),
				k.Key, k.Day, int64(a.Spent), int64(a.Held))
			continue
		}
		q.Exec(nil, `UPDATE ledger_key_day SET spent_nano = `+store.Plus("spent_nano", "$1")+`, held_nano = `+store.Plus("held_nano", "$2")+`
			WHERE key = $3 AND day = $4`,
			int64(a.Spent), int64(a.Held), k.Key, k.Day)
	}
	for k := range b.Days.FreeDeletes {
		q.Exec(nil, `DELETE FROM ledger_free_day WHERE account = $1 AND model = $2 AND day = $3`, k.Account, k.Model, k.Day)
	}
	for k, a := range b.Days.FreeAdds {
		if a.Create {
			q.Exec(nil, `INSERT INTO ledger_free_day (account, model, day, used) VALUES ($1, $2, $3, $4)
				ON CONFLICT (account, model, day) DO UPDATE SET `+store.Add("ledger_free_day", "used"), k.Account, k.Model, k.Day, a.Used)
			continue
		}
		q.Exec(nil, `UPDATE ledger_free_day SET used = `+store.Plus("used", "$1")+` WHERE account = $2 AND model = $3 AND day = $4`,
			a.Used, k.Account, k.Model, k.Day)
	}
	if len(b.Days.Usage) > 0 {
		rollUsage(q, db, b.Days.Usage, books.DayOf(b.NowMS))
	}
	for _, key := range b.RewoundKeys {
		q.Exec(nil, `UPDATE ledger_hit SET at_ms = $1 WHERE key = $2 AND at_ms > $1`, b.NowMS, key)
	}
}

// rollUsage adds the statements that roll the usage of accounts over to a day: three statements for
// any number of accounts, because at midnight all accounts roll over.
func rollUsage(q *store.Batch, db *store.DB, accounts []string, day int64) {
	list := store.List(accounts)
	q.Exec(nil, `INSERT INTO ledger_usage_day (account, model, day, cost_nano, requests, billed, failed)
		SELECT account, model, day, day_cost_nano, day_requests, day_billed, day_failed FROM ledger_usage
		WHERE `+db.In("account", 1)+` AND day <> $2 AND day_requests > 0 `+sumUsageDay, list, day)
	q.Exec(nil, `UPDATE ledger_usage SET day = $1,
		day_cost_nano = COALESCE((SELECT d.cost_nano FROM ledger_usage_day d
			WHERE d.account = ledger_usage.account AND d.model = ledger_usage.model AND d.day = $1), 0),
		day_requests = COALESCE((SELECT d.requests FROM ledger_usage_day d
			WHERE d.account = ledger_usage.account AND d.model = ledger_usage.model AND d.day = $1), 0),
		day_billed = COALESCE((SELECT d.billed FROM ledger_usage_day d
			WHERE d.account = ledger_usage.account AND d.model = ledger_usage.model AND d.day = $1), 0),
		day_failed = COALESCE((SELECT d.failed FROM ledger_usage_day d
			WHERE d.account = ledger_usage.account AND d.model = ledger_usage.model AND d.day = $1), 0)
		WHERE `+db.In("account", 2)+` AND day <> $1`, day, list)
	q.Exec(nil, `DELETE FROM ledger_usage_day WHERE `+db.In("account", 1)+` AND day = $2`, list, day)
}

// deleteDaysTx deletes an account's figures of the days up to last. The receipts of these days are
// being deleted, and the days are not shown any more.
func deleteDaysTx(tx *store.Tx, account string, last int64) error {
	for _, text := range []string{
		`UPDATE ledger_usage SET day = 0, day_cost_nano = 0, day_requests = 0, day_billed = 0, day_failed = 0 WHERE account = $1 AND day <= $2`,
		`UPDATE ledger_key SET day = 0, day_spent_nano = 0, day_held_nano = 0 WHERE account = $1 AND day <= $2`,
		`UPDATE ledger_free SET day = 0, used = 0 WHERE account = $1 AND day <= $2`,
		`DELETE FROM ledger_usage_day WHERE account = $1 AND day <= $2`,
		`DELETE FROM ledger_free_day WHERE account = $1 AND day <= $2`,
		`DELETE FROM ledger_key_day WHERE key IN (SELECT id FROM ledger_key WHERE account = $1) AND day <= $2`,
	} {
		if _, err := tx.Exec(text, account, last); err != nil {
			return err
		}
	}
	return nil
}
