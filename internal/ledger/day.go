package ledger

import (
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// The rows of keys, free quotas and usage have the figures of one day. A day is
// turned when the clock says another than the row, whether it is midnight or
// the clock has jumped, ahead or back: the row's figures are put aside, and
// those that were put aside of the new day are taken. So each day has its own
// figures, exactly, however often the clock passes over it. A row whose day is
// right costs nothing; a turn costs the batch one more read.

// keyDay names the figures of a key on a day.
type keyDay struct {
	key string
	day int64
}

// aside is what a batch adds to the figures that are put aside of a day.
type aside struct {
	spent, held money.Amount // of a key
	used        int64        // of a free quota
	whole       bool         // they are put aside now; else they have been, or were none
}

// days are the figures of days that rows are not on.
type days struct {
	keys map[keyDay]aside   // read: of today
	free map[usageKey]aside // read: of today

	// What the batch writes.
	keysLeft, keysTaken map[keyDay]aside
	freeLeft, freeTaken map[usageKey]aside
	usage               []string // accounts whose usage turns to today
}

func newDays() days {
	return days{
		keys: map[keyDay]aside{}, keysLeft: map[keyDay]aside{}, keysTaken: map[keyDay]aside{},
		free: map[usageKey]aside{}, freeLeft: map[usageKey]aside{}, freeTaken: map[usageKey]aside{},
	}
}

// readDays adds the statements that read what was put aside of today, for the
// rows that are on another day. False: there are none.
func (b *books) readDays(q *store.Batch, db *store.DB) bool {
	today := dayOf(b.nowMS)
	var keys, accounts []string
	for _, k := range b.keys {
		if k.day != today {
			keys = append(keys, k.id)
		}
	}
	for k, f := range b.free {
		if f.day != today {
			accounts = append(accounts, k.account)
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

func (b *books) scanKeyDay(row store.Row) error {
	var k keyDay
	var a aside
	err := row.Scan(&k.key, &k.day, (*int64)(&a.spent), (*int64)(&a.held))
	b.days.keys[k] = a
	return err
}

func (b *books) scanFreeDay(row store.Row) error {
	var k usageKey
	var a aside
	err := row.Scan(&k.account, &k.model, &k.day, &a.used)
	b.days.free[k] = a
	return err
}

// spentOn returns what a key has spent and holds on a day that was read.
func (b *books) spentOn(key *keyRow, day int64) (spent, held money.Amount) {
	if key.day == day {
		return key.daySpent, key.dayHeld
	}
	k := keyDay{key.id, day}
	read, left := b.days.keys[k], b.days.keysLeft[k]
	return read.spent + left.spent, read.held + left.held
}

// turnKey turns a key to a day that was read.
func (b *books) turnKey(key *keyRow, day int64) {
	if key.day == day {
		return
	}
	spent, held := b.spentOn(key, day)
	if key.daySpent != 0 || key.dayHeld != 0 {
		b.leave(keyDay{key.id, key.day}, key.daySpent, key.dayHeld, true)
	}
	take(keyDay{key.id, day}, b.days.keys, b.days.keysLeft, b.days.keysTaken)
	key.day, key.daySpent, key.dayHeld = day, spent, held
}

// leave adds to what is put aside of a key's day.
func (b *books) leave(k keyDay, spent, held money.Amount, whole bool) {
	a := b.days.keysLeft[k]
	b.days.keysLeft[k] = aside{spent: a.spent + spent, held: a.held + held, whole: a.whole || whole}
}

// take takes back what was put aside.
func take[K comparable](k K, read, left, taken map[K]aside) {
	if _, ok := read[k]; ok {
		taken[k] = aside{}
	}
	delete(read, k)
	delete(left, k)
}

// usedOn returns the places of a free quota that are used on a day that was
// read.
func (b *books) usedOn(k modelKey, day int64) int64 {
	if free := b.free[k]; free != nil && free.day == day {
		return free.used
	}
	at := usageKey{k.account, k.model, day}
	return b.days.free[at].used + b.days.freeLeft[at].used
}

// turnFree turns a free quota to a day that was read.
func (b *books) turnFree(k modelKey, day int64) *freeRow {
	free := b.free[k]
	if free == nil {
		free = &freeRow{day: day}
		b.free[k] = free
	}
	if free.day == day {
		return free
	}
	used := b.usedOn(k, day)
	if free.used != 0 {
		b.leaveFree(k, free.day, free.used, true)
	}
	take(usageKey{k.account, k.model, day}, b.days.free, b.days.freeLeft, b.days.freeTaken)
	free.day, free.used = day, used
	return free
}

func (b *books) leaveFree(k modelKey, day, used int64, whole bool) {
	at := usageKey{k.account, k.model, day}
	a := b.days.freeLeft[at]
	b.days.freeLeft[at] = aside{used: a.used + used, whole: a.whole || whole}
}

// giveBack gives a place of a day's free quota back.
func (b *books) giveBack(k modelKey, day int64) {
	free := b.free[k]
	switch {
	case free == nil:
	case free.day != day:
		b.leaveFree(k, day, -1, false)
	case free.used > 0:
		free.used--
		free.dirty = true
	}
}

// turnUsage turns an account's usage to today; it is done by statements alone.
func (b *books) turnUsage(acct *accountRow) {
	if today := dayOf(b.nowMS); acct.day != today {
		acct.day = today
		b.days.usage = append(b.days.usage, acct.id)
	}
}

// rewind is for a key that was last used later than now: the clock has gone
// back since, so each of its hits of the future was made at some time up to
// now, and is taken for made now. A window is never shorter for it, and is over
// a minute from now.
func (b *books) rewind(key *keyRow) {
	key.lastUsedMS, key.dirty = b.nowMS, true
	b.rewound = append(b.rewound, key.id)
	for k, at := range b.hits {
		if k.key == key.id {
			b.hits[k] = min(at, b.nowMS)
		}
	}
}

// writeDays adds the statements that put figures aside and take them back.
func (b *books) writeDays(q *store.Batch, db *store.DB) {
	for k := range b.days.keysTaken {
		q.Exec(nil, `DELETE FROM ledger_key_day WHERE key = $1 AND day = $2`, k.key, k.day)
	}
	for k, a := range b.days.keysLeft {
		if a.whole {
			q.Exec(nil, `INSERT INTO ledger_key_day (key, day, spent_nano, held_nano) VALUES ($1, $2, $3, $4)
				ON CONFLICT (key, day) DO UPDATE SET spent_nano = ledger_key_day.spent_nano + excluded.spent_nano,
				held_nano = ledger_key_day.held_nano + excluded.held_nano`, k.key, k.day, int64(a.spent), int64(a.held))
			continue
		}
		q.Exec(nil, `UPDATE ledger_key_day SET spent_nano = spent_nano + $1, held_nano = held_nano + $2 WHERE key = $3 AND day = $4`,
			int64(a.spent), int64(a.held), k.key, k.day)
	}
	for k := range b.days.freeTaken {
		q.Exec(nil, `DELETE FROM ledger_free_day WHERE account = $1 AND model = $2 AND day = $3`, k.account, k.model, k.day)
	}
	for k, a := range b.days.freeLeft {
		if a.whole {
			q.Exec(nil, `INSERT INTO ledger_free_day (account, model, day, used) VALUES ($1, $2, $3, $4)
				ON CONFLICT (account, model, day) DO UPDATE SET used = ledger_free_day.used + excluded.used`, k.account, k.model, k.day, a.used)
			continue
		}
		q.Exec(nil, `UPDATE ledger_free_day SET used = used + $1 WHERE account = $2 AND model = $3 AND day = $4`, a.used, k.account,
			k.model, k.day)
	}
	if len(b.days.usage) > 0 {
		turnUsage(q, db, b.days.usage, dayOf(b.nowMS))
	}
	for _, key := range b.rewound {
		q.Exec(nil, `UPDATE ledger_hit SET at_ms = $1 WHERE key = $2 AND at_ms > $1`, b.nowMS, key)
	}
}

// turnUsage adds the statements that turn the usage of accounts to a day: three,
// however many there are, since at midnight all do.
func turnUsage(q *store.Batch, db *store.DB, accounts []string, day int64) {
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

// closeDaysTx drops the figures of an account's days up to last: their receipts
// go, and nobody is shown those days any more.
func closeDaysTx(tx *store.Tx, account string, last int64) error {
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
