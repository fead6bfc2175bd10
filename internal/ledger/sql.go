package ledger

import (
	"slices"
	"strings"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// query adds a statement that answers rows: Query or QueryLocked of a batch.
type query func(scan func(row store.Row) error, text string, args ...any)

// read adds the statements that read what ops need: the accounts' rows are read
// first, by locked where the books are to be written, since the account's lock
// covers all that is the account's; everything else is read after that, and the
// time last.
func (b *books) read(q *store.Batch, locked query, db *store.DB, ops []*op) {
	var accounts, keys, holds, admitting, frees []string
	perKey := map[string]int64{}
	var most int64
	for _, o := range ops {
		switch o.kind {
		case opAdmit:
			accounts, keys = append(accounts, o.account), append(keys, o.key)
			if perKey[o.key]++; perKey[o.key] == 1 {
				admitting = append(admitting, o.key)
			}
			most = max(most, perKey[o.key])
			if o.admission.FreeDaily > 0 {
				frees = append(frees, o.account)
			}
		case opEnd, opSweep, opJob:
			accounts, keys = append(accounts, o.account), append(keys, o.key)
			if o.kind != opEnd { // this node knows its own
				holds = append(holds, o.holdID)
			}
			if o.free {
				frees = append(frees, o.account)
			}
		case opRefused:
			if o.account != "" {
				accounts = append(accounts, o.account)
			}
		}
	}
	if accounts = distinct(accounts); len(accounts) > 0 {
		locked(b.scanAccount, `SELECT id, balance_nano, held_nano, floor_nano, disabled, seq, day, low_set, low_armed, low_nano
			FROM ledger_account WHERE `+db.In("id", 1)+` ORDER BY id`, store.List(accounts))
	}
	for _, o := range ops {
		switch {
		case o.admitting != nil:
			o.admitting.Read(q)
		case o.ending != nil:
			o.ending.Read(q)
		}
	}
	if keys = distinct(keys); len(keys) > 0 {
		q.Query(b.scanKey, `SELECT id, account, version, disabled, rpm, daily_budget_nano, total_limit_nano,
			spent_nano, held_nano, day, day_spent_nano, day_held_nano, hits, last_used_ms
			FROM ledger_key WHERE `+db.In("id", 1), store.List(keys))
	}
	if len(admitting) > 0 {
		q.Query(b.scanHit, `SELECT h.key, h.n, h.at_ms FROM ledger_key k JOIN ledger_hit h ON h.key = k.id
			WHERE `+db.In("k.id", 1)+` AND k.rpm > 0 AND h.n > k.hits - k.rpm AND h.n <= k.hits - k.rpm + $2`,
			store.List(admitting), most)
	}
	if frees = distinct(frees); len(frees) > 0 {
		q.Query(b.scanFree, `SELECT account, model, day, used FROM ledger_free WHERE `+db.In("account", 1), store.List(frees))
	}
	if len(holds) > 0 {
		q.Query(b.scanHold, `SELECT id, epoch, account, key, model, endpoint, day, revision, free, amount_nano, created_ms,
			cost_nano, prompt_tokens, cached_tokens, completion_tokens, line, job
			FROM ledger_hold WHERE `+db.In("id", 1), store.List(holds))
	}
	q.Now(&b.nowMS)
}

// distinct sorts and removes repetitions, in place.
func distinct(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (b *books) scanAccount(row store.Row) error {
	var a accountRow
	var disabled, set, armed int64
	if err := row.Scan(&a.id, (*int64)(&a.balance), (*int64)(&a.held), (*int64)(&a.floor), &disabled, &a.seq, &a.day, &set, &armed,
		(*int64)(&a.low.level)); err != nil {
		return err
	}
	a.disabled, a.low.set, a.low.armed = disabled != 0, set != 0, armed != 0
	b.accounts[a.id] = &a
	return nil
}

func (b *books) scanKey(row store.Row) error {
	var k keyRow
	var disabled int64
	if err := row.Scan(&k.id, &k.account, &k.version, &disabled, &k.rpm, (*int64)(&k.dailyBudget), (*int64)(&k.limit),
		(*int64)(&k.spent), (*int64)(&k.held), &k.day, (*int64)(&k.daySpent), (*int64)(&k.dayHeld), &k.hits, &k.lastUsedMS); err != nil {
		return err
	}
	k.disabled = disabled != 0
	b.keys[k.id] = &k
	return nil
}

func (b *books) scanHit(row store.Row) error {
	var k hitKey
	var at int64
	if err := row.Scan(&k.key, &k.n, &at); err != nil {
		return err
	}
	b.hits[k] = at
	return nil
}

func (b *books) scanFree(row store.Row) error {
	var k modelKey
	var f freeRow
	if err := row.Scan(&k.account, &k.model, &f.day, &f.used); err != nil {
		return err
	}
	b.free[k] = &f
	return nil
}

func (b *books) scanHold(row store.Row) error {
	var h holdRow
	var free int64
	if err := row.Scan(&h.id, &h.epoch, &h.account, &h.key, &h.model, &h.endpoint, &h.day, &h.revision, &free, (*int64)(&h.amount),
		&h.createdMS,
		(*int64)(&h.cost), &h.tokens.Prompt, &h.tokens.Cached, &h.tokens.Completion, &h.line, &h.job); err != nil {
		return err
	}
	h.free = free != 0
	b.holds[h.id] = &h
	return nil
}

// What a batch writes of each table.
var (
	updateAccounts = store.Update("ledger_account", "id text, balance_nano bigint, held_nano bigint, seq bigint, day bigint")
	updateKeys     = store.Update("ledger_key",
		`id text, spent_nano bigint, held_nano bigint, day bigint, day_spent_nano bigint, day_held_nano bigint,
		hits bigint, last_used_ms bigint`)
	insertHits  = store.Insert("ledger_hit", "key text, n bigint, at_ms bigint", "")
	insertHolds = store.Insert("ledger_hold",
		`id text, epoch text, account text, key text, model text, endpoint text, day bigint, revision bigint,
		free bigint, amount_nano bigint, created_ms bigint, cost_nano 0, prompt_tokens 0, cached_tokens 0, completion_tokens 0, line '',
			job text`, "")
	updateProgress = store.Update("ledger_hold",
		`id text, cost_nano bigint, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint,
		line text`)
)

// write adds the statements that write what was decided: one a table.
func (b *books) write(q *store.Batch, db *store.DB, tell func(q *store.Batch, nowMS int64, low Low)) {
	var rows [][]any
	for _, a := range b.accounts {
		if a.dirty {
			rows = append(rows, []any{a.id, int64(a.balance), int64(a.held), a.seq, a.day})
		}
	}
	q.Rows(updateAccounts, rows)
	rows = nil
	for _, k := range b.keys {
		if k.dirty {
			rows = append(rows, []any{k.id, int64(k.spent), int64(k.held), k.day, int64(k.daySpent), int64(k.dayHeld), k.hits, k.lastUsedMS})
		}
	}
	q.Rows(updateKeys, rows)
	b.writeDays(q, db)
	b.writeHits(q)
	for k, f := range b.free {
		if f.dirty {
			q.Exec(nil, `INSERT INTO ledger_free (account, model, day, used) VALUES ($1, $2, $3, $4)
				ON CONFLICT (account, model) DO UPDATE SET day = excluded.day, used = excluded.used`, k.account, k.model, f.day, f.used)
		}
	}
	rows = nil
	for _, h := range b.newHolds {
		rows = append(rows, []any{h.id, h.epoch, h.account, h.key, h.model, h.endpoint, h.day, h.revision, flag(h.free), int64(h.amount),
			h.createdMS, h.job})
	}
	q.Rows(insertHolds, rows)
	b.writeProgress(q)
	if len(b.goneHolds) > 0 {
		q.Exec(nil, `DELETE FROM ledger_hold WHERE `+db.In("id", 1), store.List(b.goneHolds))
	}
	b.writeReceipts(q)
	b.writeOver(q)
	b.writeUsage(q)
	for _, r := range b.riders {
		r.Write(q, b.nowMS)
	}
	for _, low := range b.lows {
		q.Exec(nil, `UPDATE ledger_account SET low_armed = 0 WHERE id = $1`, low.Account)
		if tell != nil {
			tell(q, b.nowMS, low)
		}
	}
}

// writeHits numbers the hits of rate windows, and forgets those that are out of
// every window.
func (b *books) writeHits(q *store.Batch) {
	for key, n := range b.oldHits {
		q.Exec(nil, `DELETE FROM ledger_hit WHERE key = $1 AND n <= $2`, key, n)
	}
	var rows [][]any
	for _, h := range b.newHits {
		if n, old := b.oldHits[h.key]; !old || h.n > n {
			rows = append(rows, []any{h.key, h.n, b.nowMS})
		}
	}
	q.Rows(insertHits, rows)
}

// writeProgress writes the newest progress of streams. A hold that has ended
// has no row any more, and is left out.
func (b *books) writeProgress(q *store.Batch) {
	var rows [][]any
	for _, h := range b.progress {
		h.queued.Store(false) // what is noted from here on is written by a later batch
		p := h.progress.Load()
		rows = append(rows, []any{h.row.id, int64(min(max(p.Cost, 0), money.Max)), p.Tokens.Prompt, p.Tokens.Cached, p.Tokens.Completion, p.Line})
	}
	q.Rows(updateProgress, rows)
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

// longestWord bounds what strangers can write into a receipt: the model that a
// client asked for, the code that a provider gave.
const longestWord = 256

// word makes a stranger's text fit to be stored: bounded, valid UTF-8, and
// without the zero byte, which PostgreSQL refuses.
func word(text string) string {
	text = strings.ReplaceAll(text[:min(len(text), longestWord)], "\x00", "")
	return strings.ToValidUTF8(text, "")
}

const receiptColumns = `id text, account text, seq bigint, key text, model text, endpoint text, day bigint, revision bigint, outcome bigint,
	status bigint, code text, line text, attempts text, prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, images bigint,
	cost_nano bigint, over_nano bigint, held_nano bigint, balance_nano bigint, first_byte_ms bigint, duration_ms bigint, created_ms bigint,
	ended_ms bigint, stands_for bigint, job text, free bigint`

var (
	insertReceipts = store.Insert("ledger_receipt", receiptColumns, "")
	// A row that only logs a refusal gives way to one that is there: it may be
	// written twice where nobody knows whether its batch was committed.
	insertRefusals = store.Insert("ledger_receipt", receiptColumns, "ON CONFLICT (id) DO NOTHING")
)

// writeReceipts writes the receipts and the log's rows of what was refused.
func (b *books) writeReceipts(q *store.Batch) {
	var receipts, refusals [][]any
	for i := range b.receipts {
		if r := &b.receipts[i]; r.end.Outcome == Refused {
			refusals = append(refusals, r.columns())
		} else {
			receipts = append(receipts, r.columns())
		}
	}
	q.Rows(insertReceipts, receipts)
	q.Rows(insertRefusals, refusals)
}

// columns are those of receiptColumns.
func (r *receiptRow) columns() []any {
	return []any{
		r.hold.id, r.hold.account, r.seq, r.hold.key, word(r.hold.model), word(r.hold.endpoint), r.hold.day, r.hold.revision,
		int64(r.end.Outcome), int64(r.end.Status), word(r.end.Code), word(r.end.Line), r.attempt,
		r.end.Tokens.Prompt, r.end.Tokens.Cached, r.end.Tokens.Completion, r.end.Tokens.Images,
		int64(r.cost), int64(r.over), int64(r.hold.amount), int64(r.balance),
		r.end.FirstByte.Milliseconds(), r.end.Duration.Milliseconds(), r.hold.createdMS, r.endedMS, r.standsFor, r.hold.job, flag(r.hold.free),
	}
}

// sumUsageDay adds figures of a day to those that were put aside of it.
const sumUsageDay = `ON CONFLICT (account, model, day) DO UPDATE SET cost_nano = ledger_usage_day.cost_nano + excluded.cost_nano,
	requests = ledger_usage_day.requests + excluded.requests, billed = ledger_usage_day.billed + excluded.billed,
	failed = ledger_usage_day.failed + excluded.failed`

var (
	insertUsageDays = store.Insert("ledger_usage_day",
		"account text, model text, day bigint, cost_nano bigint, requests bigint, billed bigint, failed bigint", sumUsageDay)
	insertUsage = store.Insert("ledger_usage", `account text, model text, cost_nano bigint, requests bigint, billed bigint, failed bigint,
		prompt_tokens bigint, completion_tokens bigint, images bigint,
		day bigint, day_cost_nano bigint, day_requests bigint, day_billed bigint, day_failed bigint`,
		`ON CONFLICT (account, model) DO UPDATE SET
		cost_nano = ledger_usage.cost_nano + excluded.cost_nano,
		requests = ledger_usage.requests + excluded.requests,
		billed = ledger_usage.billed + excluded.billed,
		failed = ledger_usage.failed + excluded.failed,
		prompt_tokens = ledger_usage.prompt_tokens + excluded.prompt_tokens,
		completion_tokens = ledger_usage.completion_tokens + excluded.completion_tokens,
		images = ledger_usage.images + excluded.images,
		day = excluded.day,
		day_cost_nano = excluded.day_cost_nano + CASE WHEN ledger_usage.day = excluded.day THEN ledger_usage.day_cost_nano ELSE 0 END,
		day_requests = excluded.day_requests + CASE WHEN ledger_usage.day = excluded.day THEN ledger_usage.day_requests ELSE 0 END,
		day_billed = excluded.day_billed + CASE WHEN ledger_usage.day = excluded.day THEN ledger_usage.day_billed ELSE 0 END,
		day_failed = excluded.day_failed + CASE WHEN ledger_usage.day = excluded.day THEN ledger_usage.day_failed ELSE 0 END`)
)

// writeUsage adds the ended requests to the stored totals, beside which stand the
// figures of today; those of another day are put aside.
func (b *books) writeUsage(q *store.Batch) {
	today := dayOf(b.nowMS)
	totals, todays := map[modelKey]Totals{}, map[modelKey]Totals{}
	var aside, rows [][]any
	for k, t := range b.usage {
		m := modelKey{k.account, k.model}
		totals[m] = totals[m].plus(*t)
		if k.day == today {
			todays[m] = *t
		} else {
			aside = append(aside, []any{k.account, k.model, k.day, int64(t.Cost), t.Requests, t.Billed, t.Failed})
		}
	}
	for m, t := range totals {
		d := todays[m]
		rows = append(rows, []any{m.account, m.model, int64(t.Cost), t.Requests, t.Billed, t.Failed, t.Prompt, t.Completion, t.Images,
			today, int64(d.Cost), d.Requests, d.Billed, d.Failed})
	}
	q.Rows(insertUsageDays, aside)
	q.Rows(insertUsage, rows)
}

// plus adds two counts.
func (t Totals) plus(o Totals) Totals {
	return Totals{
		Cost: t.Cost + o.Cost, Requests: t.Requests + o.Requests, Billed: t.Billed + o.Billed, Failed: t.Failed + o.Failed,
		Prompt: t.Prompt + o.Prompt, Completion: t.Completion + o.Completion, Images: t.Images + o.Images,
	}
}
