package rows

import (
	"slices"

	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Read adds the statements to read the rows in need, except cached rows. Accounts come first,
// because the lock of an account's row covers all rows of the account; on PostgreSQL, the time comes
// last.
func (b *Books) Read(q *store.Batch, db *store.DB, need Need) {
	b.cached = b.cache.rows.at(b.before)
	b.Receipts = make([]books.ReceiptRow, 0, len(need.Accounts))
	accounts, keys, subjects := need.Accounts, need.Keys, []string{}
	var payers, windowKeys []string
	perKey := map[string]int64{}
	var maxPerKey int64
	for _, a := range need.Admissions {
		accounts, payers, keys = append(accounts, a.Account), append(payers, a.Account), append(keys, a.Key)
		key, known := b.cached.keys[a.Key]
		full := !known || key.RPM > 0 && key.Hits+int64(len(need.Admissions)) >= key.RPM // the window may be full
		if perKey[a.Key]++; perKey[a.Key] == 1 && full {
			windowKeys = append(windowKeys, a.Key)
		}
		maxPerKey = max(maxPerKey, perKey[a.Key])
		subjects = append(subjects, b.uncachedLimits(a)...)
	}
	if accounts = b.uncachedAccounts(distinct(accounts)); len(accounts) > 0 {
		query := q.Query
		if b.LockFree {
			query = q.QueryFree
		}
		query(b.scanAccount, `SELECT id, balance_nano, floor_nano, disabled, seq, low_set, low_armed, low_nano
			FROM ledger_account WHERE `+db.In("id", 1)+` ORDER BY id`, store.List(accounts))
	}
	if b.hasCache() {
		payers = accounts // cached accounts have their sums
	}
	if payers = distinct(payers); len(payers) > 0 {
		q.Query(b.scanHeld, `SELECT account, key, day, `+sumAmount+` FROM ledger_hold WHERE `+db.In("account", 1)+
			` GROUP BY account, key, day`, store.List(payers))
	}
	for _, hook := range need.Hooks {
		hook.Read(q)
	}
	if keys = b.uncachedKeys(distinct(keys)); len(keys) > 0 {
		q.Query(b.scanKey, `SELECT id, account, version, disabled, rpm, daily_budget_nano, total_limit_nano, spent_nano, last_used_ms
			FROM ledger_key WHERE `+db.In("id", 1), store.List(keys))
	}
	if b.hasCache() {
		windowKeys = append(windowKeys, keys...) // cached keys have their newest hit
	}
	if windowKeys = distinct(windowKeys); len(windowKeys) > 0 {
		q.Query(b.scanHit, `WITH newest AS MATERIALIZED (SELECT h.key, h.n, h.at_ms, k.rpm FROM ledger_key k
				JOIN ledger_hit h ON h.key = k.id AND h.n = (SELECT MAX(n) FROM ledger_hit WHERE key = k.id)
				WHERE `+db.In("k.id", 1)+` AND k.rpm > 0)
			SELECT key, n, at_ms FROM newest UNION ALL
			SELECT h.key, h.n, h.at_ms FROM newest w JOIN ledger_hit h ON h.key = w.key AND h.n > w.n - w.rpm AND h.n <= w.n - w.rpm + $2
			WHERE w.n + $2 > w.rpm`,
			store.List(windowKeys), max(maxPerKey, 1))
	}
	if len(need.Holds) > 0 {
		q.Query(b.scanHold, `SELECT id, epoch, account, key, model, endpoint, day, revision, free, amount_nano, created_ms,
			cost_nano, prompt_tokens, cached_tokens, completion_tokens, line, job, price_factor, unit, quantity
			FROM ledger_hold WHERE `+db.In("id", 1), store.List(need.Holds))
	}
	subjects = distinct(subjects)
	switch {
	case len(subjects) > 0 && b.hasCache():
		q.Query(b.scanLimit, `SELECT CAST($2 AS BIGINT), subject, spent_nano, used FROM ledger_limit
			WHERE day = CAST($2 AS BIGINT) / 86400000 AND `+db.In("subject", 1), store.List(subjects), b.NowMS)
	case len(subjects) > 0:
		q.QueryNow(&b.NowMS, b.scanLimit, `SELECT n.ms, COALESCE(l.subject, ''), COALESCE(l.spent_nano, 0), COALESCE(l.used, 0)
			FROM %s n LEFT JOIN ledger_limit l ON l.day = n.ms / 86400000 AND `+db.In("l.subject", 1), store.List(subjects))
	case !b.hasCache():
		q.Now(&b.NowMS)
	}
}

var sumAmount = store.Sum("amount_nano")

// distinct sorts ids and removes duplicates, in place.
func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (b *Books) scanAccount(row store.Row) error {
	var a books.AccountRow
	var disabled, set, armed int64
	if err := row.Scan(&a.ID, (*int64)(&a.Balance), (*int64)(&a.Floor), &disabled, &a.Seq,
		&set, &armed, (*int64)(&a.Low.Amount)); err != nil {
		return err
	}
	a.Disabled, a.Low.Set, a.Low.Armed = disabled != 0, set != 0, armed != 0
	b.Accounts[a.ID] = &a
	return nil
}

func (b *Books) scanHeld(row store.Row) error {
	var account, key string
	var day, amount int64
	if err := row.Scan(&account, &key, &day, &amount); err != nil {
		return err
	}
	b.AddHeld(account, key, day, money.Amount(amount))
	return nil
}

func (b *Books) scanKey(row store.Row) error {
	var k books.KeyRow
	var disabled int64
	if err := row.Scan(&k.ID, &k.Account, &k.Version, &disabled, &k.RPM, (*int64)(&k.DailyBudget), (*int64)(&k.Limit),
		(*int64)(&k.Spent), &k.LastUsedMS); err != nil {
		return err
	}
	k.Disabled = disabled != 0
	b.Keys[k.ID] = &k
	return nil
}

func (b *Books) scanHit(row store.Row) error {
	var k books.HitKey
	var at int64
	if err := row.Scan(&k.Key, &k.N, &at); err != nil {
		return err
	}
	b.Hits[k] = at
	if key := b.Keys[k.Key]; key != nil && k.N > key.Hits {
		key.Hits, key.LastHitMS = k.N, at
	}
	return nil
}

func (b *Books) scanLimit(row store.Row) error {
	var subject string
	var l books.LimitRow
	if err := row.Scan(&b.NowMS, &subject, (*int64)(&l.Spent), &l.Used); err != nil {
		return err
	}
	b.Limits[books.LimitKey{Subject: subject, Day: books.DayOf(b.NowMS)}] = l
	return nil
}

func (b *Books) scanHold(row store.Row) error {
	var h books.HoldRow
	var free int64
	if err := row.Scan(&h.ID, &h.Epoch, &h.Account, &h.Key, &h.Model, &h.Endpoint, &h.Day, &h.Revision, &free,
		(*int64)(&h.Amount), &h.CreatedMS, (*int64)(&h.Cost), &h.Tokens.Prompt, &h.Tokens.Cached, &h.Tokens.Completion, &h.Line,
		&h.Job, (*int64)(&h.Factor), (*string)(&h.Quantity.Unit), &h.Quantity.N); err != nil {
		return err
	}
	h.Free = free != 0
	b.Holds[h.ID] = &h
	return nil
}

var (
	updateAccounts = store.Update("ledger_account", "balance_nano bigint, seq bigint, id text")
	updateKeys     = store.Update("ledger_key", "spent_nano bigint, last_used_ms bigint, id text")
	insertLimits   = store.Insert("ledger_limit", "subject text, day bigint, spent_nano bigint, used bigint",
		"ON CONFLICT (subject, day) DO UPDATE SET "+store.Add("ledger_limit", "spent_nano", "used"))
	deleteHits  = store.Delete("ledger_hit", "key text =, n bigint <=")
	deleteHolds = store.Delete("ledger_hold", "id text =")
	insertHits  = store.Insert("ledger_hit", "key text, n bigint, at_ms bigint", "")
	insertHolds = store.Insert("ledger_hold",
		`id text, epoch text, account text, key text, model text, endpoint text, day bigint, revision bigint,
		free bigint, amount_nano bigint, created_ms bigint, cost_nano 0, prompt_tokens 0, cached_tokens 0, completion_tokens 0, line '',
			job text, price_factor bigint`, "")
	updateProgress = store.Update("ledger_hold",
		`cost_nano bigint, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint,
		unit text, quantity bigint, line text, id text`)
)

// Write adds the statements to write the changes. announce, if not nil, adds statements to announce a
// low balance.
func (b *Books) Write(q *store.Batch, announce func(q *store.Batch, nowMS int64, low books.Low)) {
	rows := updateAccounts.Make(len(b.Accounts))
	for _, a := range b.Accounts {
		if a.Dirty {
			rows = append(rows, int64(a.Balance), a.Seq, a.ID)
		}
	}
	q.Rows(updateAccounts, rows)
	rows = updateKeys.Make(len(b.Keys))
	for _, k := range b.Keys {
		if k.Dirty {
			rows = append(rows, int64(k.Spent), k.LastUsedMS, k.ID)
		}
	}
	q.Rows(updateKeys, rows)
	rows = insertLimits.Make(len(b.LimitAdds))
	for k, l := range b.LimitAdds {
		rows = append(rows, k.Subject, k.Day, int64(l.Spent), l.Used)
	}
	q.Rows(insertLimits, rows)
	b.writeHits(q)
	rows = insertHolds.Make(len(b.NewHolds))
	for _, h := range b.NewHolds {
		rows = append(rows, h.ID, h.Epoch, h.Account, h.Key, h.Model, h.Endpoint, h.Day, h.Revision, store.Bool(h.Free), int64(h.Amount),
			h.CreatedMS, h.Job, int64(h.Factor))
	}
	q.Rows(insertHolds, rows)
	b.writeProgress(q)
	rows = deleteHolds.Make(len(b.EndedHolds))
	for _, id := range b.EndedHolds {
		rows = append(rows, id)
	}
	q.Rows(deleteHolds, rows)
	requestlog.Write(q, b.Receipts)
	b.writeSegments(q)
	b.writeOver(q)
	b.writeSeries(q)
	for _, hook := range b.Hooks {
		hook.Write(q, b.NowMS)
	}
	for _, low := range b.Lows {
		q.Exec(nil, `UPDATE ledger_account SET low_armed = 0 WHERE id = $1`, low.Account)
		if announce != nil {
			announce(q, b.NowMS, low)
		}
	}
	q.Version(&b.after)
}

// writeHits inserts the hits of rate windows and deletes hits outside every window.
func (b *Books) writeHits(q *store.Batch) {
	for _, key := range b.RewoundKeys {
		q.Exec(nil, `UPDATE ledger_hit SET at_ms = $1 WHERE key = $2 AND at_ms > $1`, b.NowMS, key)
	}
	rows := deleteHits.Make(len(b.OldHits))
	for key, n := range b.OldHits {
		rows = append(rows, key, n)
	}
	q.Rows(deleteHits, rows)
	rows = insertHits.Make(len(b.NewHits))
	for _, h := range b.NewHits {
		if n, old := b.OldHits[h.Key]; !old || h.N > n {
			rows = append(rows, h.Key, h.N, b.NowMS)
		}
	}
	q.Rows(insertHits, rows)
}

// writeProgress writes the newest progress of streams. The row of an ended hold is gone, so its
// progress changes nothing.
func (b *Books) writeProgress(q *store.Batch) {
	rows := updateProgress.Make(len(b.Progress))
	for hold, p := range b.Progress {
		t := p.Tokens.Bounded()
		rows = append(rows, int64(min(max(p.Cost, 0), money.Max)), t.Prompt, t.Cached, t.Completion,
			string(p.Quantity.Unit), books.BoundedCount(p.Quantity.N), p.Line, hold)
	}
	q.Rows(updateProgress, rows)
}
