package rows

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// cacheTest runs batches of random operations. At the beginning of each batch it compares the cached
// rows with the rows in the database.
type cacheTest struct {
	t               *testing.T
	db              *store.DB
	ms              atomic.Int64 // the clock
	random          *rand.Rand
	cache           Cache
	open            []*books.HoldRow
	hits, rows      int // comparisons with cached rows, and the number of these rows
	changedByOthers int // comparisons after writes of others
	admitted, ended int
}

// TestCachedRowsEqualStoredRows runs requests of every outcome beside changes of their accounts and
// keys, over midnight and back, with failing batches: every cached row equals the stored one.
func TestCachedRowsEqualStoredRows(t *testing.T) {
	t.Parallel()
	c := &cacheTest{t: t, random: rand.New(rand.NewPCG(1, 2))}
	c.ms.Store(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC).UnixMilli())
	c.db = storetest.Open(t, storetest.SQLite(t), store.Options{Now: func() time.Time { return time.UnixMilli(c.ms.Load()) }})
	for _, account := range []string{"a", "b", "c"} {
		c.change(`INSERT INTO ledger_account (id, balance_nano, floor_nano, disabled, seq) VALUES ($1, $2, 0, 0, 0)`,
			account, int64(50*money.USD))
		c.change(`INSERT INTO ledger_key (id, account, version, disabled, closed, rpm, daily_budget_nano, total_limit_nano,
			spent_nano, last_used_ms) VALUES ($1, $2, 1, 0, 0, -1, -1, -1, 0, 0)`, account+"_key", account)
	}
	for range 500 {
		if c.random.IntN(6) == 0 {
			c.changeByOthers(string(rune('a' + c.random.IntN(3))))
		}
		c.batch(1+c.random.IntN(5), c.random.IntN(20))
	}
	if c.hits < 100 || c.rows < 500 || c.changedByOthers < 20 || c.admitted < 300 || c.ended < 200 {
		t.Errorf("got %d batches with %d cached rows, %d without, %d admissions and %d ends; want at least 100, 500, 20, 300, 200",
			c.hits, c.rows, c.changedByOthers, c.admitted, c.ended)
	}
}

// change runs a statement outside the batches.
func (c *cacheTest) change(text string, args ...any) {
	c.t.Helper()
	if err := c.db.Update(c.t.Context(), func(tx *store.Tx) error { _, err := tx.Exec(text, args...); return err }); err != nil {
		c.t.Fatal(err)
	}
}

// changeByOthers makes one random change to an account, its key, or the clock.
func (c *cacheTest) changeByOthers(account string) {
	key, amount := account+"_key", c.random.Int64N(int64(40*money.USD))
	switch c.random.IntN(6) {
	case 0:
		c.change(`UPDATE ledger_account SET balance_nano = balance_nano + $1, seq = seq + 1 WHERE id = $2`, int64(5*money.USD), account)
	case 1:
		c.change(`UPDATE ledger_key SET rpm = $1, daily_budget_nano = $2 WHERE id = $3`, c.random.Int64N(100), amount, key)
		c.change(`INSERT INTO ledger_limit (subject, day, spent_nano, used) VALUES ($1, $2, $3, 0)
			ON CONFLICT (subject, day) DO UPDATE SET spent_nano = excluded.spent_nano`, key, books.DayOf(c.ms.Load()), amount/2)
	case 2:
		c.change(`UPDATE ledger_key SET rpm = -1, daily_budget_nano = -1 WHERE id = $1`, key)
		c.change(`DELETE FROM ledger_limit WHERE subject = $1`, key)
	case 3:
		c.change(`UPDATE ledger_account SET low_set = 1, low_armed = 1, low_nano = $1 WHERE id = $2`, amount, account)
	case 4:
		c.change(`UPDATE ledger_key SET last_used_ms = $1 WHERE id = $2`, c.ms.Load(), key)
	case 5:
		c.ms.Add([]int64{13, -5}[c.random.IntN(2)] * time.Hour.Milliseconds())
	}
}

// batch commits n random operations. Fault 0 loses the answer to the COMMIT, and fault 1 breaks the
// connection before the COMMIT.
func (c *cacheTest) batch(n, fault int) {
	ctx := c.t.Context()
	session, err := c.db.Session(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	run := func(q *store.Batch) {
		c.t.Helper()
		if err := session.Run(ctx, q); err != nil {
			c.t.Fatal(err)
		}
	}
	b, q := c.cache.NewBooks(), c.db.NewBatch()
	q.Begin("1s", "2s")
	b.Begin(q)
	run(q)
	c.compare(run, b.before)

	var need Need
	var ends []*books.HoldRow
	for range n {
		if len(c.open) > len(ends) && c.random.IntN(2) == 0 {
			h := c.open[len(ends)]
			ends = append(ends, h)
			need.Accounts, need.Keys = append(need.Accounts, h.Account), append(need.Keys, h.Key)
		} else {
			need.Admissions = append(need.Admissions, c.admission())
		}
	}
	q = c.db.NewBatch()
	b.Read(q, c.db, need)
	run(q)
	for _, h := range ends {
		b.Holds[h.ID] = h
		end := books.End{Outcome: books.Outcome(1 + c.random.IntN(3)), Cost: money.Amount(c.random.Int64N(int64(h.Amount) + 1)), Line: "line"}
		if _, ended := b.End(h.ID, end, "[]"); !ended {
			c.t.Errorf("the hold %s was not ended, want it ended", h.ID)
		}
	}
	var admitted []*books.HoldRow
	for _, a := range need.Admissions {
		if h, err := b.Admit(*a, "node"); err == nil {
			admitted = append(admitted, h)
		}
	}
	q = c.db.NewBatch()
	b.Write(q, nil)
	if fault != 1 {
		q.Commit()
	}
	run(q)
	if err := session.Close(fault > 1); err != nil {
		c.t.Fatal(err)
	}
	if fault > 1 {
		c.cache.Store(b)
	}
	if fault != 1 {
		c.open = append(c.open[len(ends):], admitted...)
		c.admitted, c.ended = c.admitted+len(admitted), c.ended+len(ends)
	}
}

// admission returns an admission, sometimes of a free model, and sometimes beyond every balance.
func (c *cacheTest) admission() *books.Admission {
	account := string(rune('a' + c.random.IntN(3)))
	a := &books.Admission{Request: id.New("req_"), Account: account, Key: account + "_key", KeyVersion: 1, Model: "m",
		Amount: money.Amount(c.random.Int64N(int64(money.USD / 4))), FreeDaily: int64(c.random.IntN(2) * 1000)}
	if c.random.IntN(10) == 0 {
		a.Amount = money.Max
	}
	return a
}

// compare compares the cached rows with the stored rows.
func (c *cacheTest) compare(run func(*store.Batch), version store.Version) {
	look, stored := c.db.NewBatch(), new(Cache).NewBooks()
	look.Query(stored.scanAccount, `SELECT id, balance_nano, floor_nano, disabled, seq, low_set, low_armed, low_nano
		FROM ledger_account`)
	look.Query(stored.scanHeld, `SELECT account, key, day, SUM(amount_nano) FROM ledger_hold GROUP BY account, key, day`)
	look.Query(stored.scanKey, `SELECT id, account, version, disabled, rpm, daily_budget_nano, total_limit_nano, spent_nano, last_used_ms
		FROM ledger_key`)
	look.Query(stored.scanHit, `SELECT h.key, h.n, h.at_ms FROM ledger_hit h JOIN ledger_key k ON k.id = h.key WHERE k.rpm > 0`)
	look.Query(func(row store.Row) error {
		var k books.LimitKey
		var l books.LimitRow
		err := row.Scan(&k.Subject, &k.Day, (*int64)(&l.Spent), &l.Used)
		stored.Limits[k] = l
		return err
	}, `SELECT subject, day, spent_nano, used FROM ledger_limit`)
	run(look)
	known := c.cache.rows.at(version)
	if known.accounts == nil {
		c.changedByOthers++
		return
	}
	c.hits++
	c.rows += len(known.accounts) + len(known.keys) + len(known.limits)
	for id, row := range known.accounts {
		if is := stored.Accounts[id]; is == nil || *is != *row {
			c.t.Errorf("account %s is cached as %+v, want %+v", id, row, is)
		}
	}
	for id := range known.accounts {
		if !maps.Equal(known.held[id], stored.Held[id]) {
			c.t.Errorf("the held sums of account %s are cached as %v, want %v", id, known.held[id], stored.Held[id])
		}
	}
	for k, row := range known.limits {
		if stored.Limits[k] != row {
			c.t.Errorf("limit %v is cached as %+v, want %+v", k, row, stored.Limits[k])
		}
	}
	for id, row := range known.keys {
		if is := stored.Keys[id]; is == nil || *is != *row {
			c.t.Errorf("key %s is cached as %+v, want %+v", id, row, is)
		}
	}
}

func TestCachedRowsAreBounded(t *testing.T) {
	t.Parallel()
	b := new(Cache).NewBooks()
	b.cached.accounts, b.cached.keys = map[string]*books.AccountRow{"old": {ID: "old"}}, map[string]*books.KeyRow{}
	for i := range maxCachedRows {
		id := string(rune('a'+i%26)) + time.Duration(i).String()
		b.Accounts[id] = &books.AccountRow{ID: id}
	}
	var k rowCache
	k.store(b)
	if k.accounts != nil {
		t.Error("rows of a database without a version are cached, want none")
	}
	version, later := versions(t)
	b.after = version
	k.store(b)
	if _, known := k.accounts["old"]; known || len(k.accounts) != maxCachedRows {
		t.Errorf("%d rows are cached, want the %d of the batch", len(k.accounts), maxCachedRows)
	}
	if !k.version.Same(b.after) || len(k.at(b.after).accounts) != len(k.accounts) || k.at(later).accounts != nil {
		t.Error("the rows are missing at their version or valid at a later one, want them valid only at their version")
	}
}

// versions returns the versions of a database before and after a write.
func versions(t *testing.T) (before, after store.Version) {
	t.Helper()
	ctx := context.Background()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{})
	b := db.NewBatch()
	b.Version(&before)
	b.Exec(nil, `INSERT INTO ledger_hit (key, n, at_ms) VALUES ('key', 1, 1)`)
	b.Version(&after)
	session, err := db.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(session.Run(ctx, b), session.Close(true)); err != nil {
		t.Fatal(err)
	}
	return before, after
}
