package ledger

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

// rowReader compares the committer's cached rows with the rows in the database at the beginning of
// each batch.
type rowReader struct {
	t               *testing.T
	c               *committer
	begun           bool // the batch has been compared
	looks, rows     int  // comparisons with cached rows, and the number of these rows
	changedByOthers int  // comparisons after writes of others
}

func (r *rowReader) exec(ctx context.Context, s *store.Session, b *store.Batch, p phase) error {
	err := s.Run(ctx, b)
	if err != nil || p != phaseRead {
		r.begun = false
		return err
	}
	if r.begun {
		return nil
	}
	r.begun = true
	var now store.Version
	look, stored := r.c.l.db.NewBatch(), newBatch(nil, nil, locks{})
	look.Version(&now)
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
	if err := s.Run(ctx, look); err != nil {
		return err
	}
	known := r.c.rows.at(now)
	if known.accounts == nil {
		r.changedByOthers++
		return nil
	}
	r.looks++
	r.rows += len(known.accounts) + len(known.keys) + len(known.limits)
	for id, row := range known.accounts {
		if is := stored.Accounts[id]; is == nil || *is != row {
			r.t.Errorf("account %s is known as %+v; the books say %+v", id, row, is)
		}
	}
	for id := range known.accounts {
		if !maps.Equal(known.held[id], stored.Held[id]) {
			r.t.Errorf("account %s is known to hold %v; the books say %v", id, known.held[id], stored.Held[id])
		}
	}
	for k, row := range known.limits {
		if stored.Limits[k] != row {
			r.t.Errorf("limit %v is known as %+v; the books say %+v", k, row, stored.Limits[k])
		}
	}
	for id, row := range known.keys {
		if is := stored.Keys[id]; is == nil || *is != row {
			r.t.Errorf("key %s is known as %+v; the books say %+v", id, row, is)
		}
	}
	return nil
}

// TestCachedRowsEqualStoredRows runs requests of every outcome beside changes of their accounts and
// keys, over midnight and back, with failing batches: every cached row equals the stored one.
func TestCachedRowsEqualStoredRows(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	time0 := newClock()
	db := storetest.Open(t, storetest.SQLite(t), store.Options{Now: time0.now})
	l := New(Options{DB: db, Node: join(t, db), OutageGrace: 20 * time.Second, QueueWait: 10 * time.Second})
	reader := &rowReader{t: t, c: newCommitter(l)}
	broken := rand.New(rand.NewPCG(1, 2))
	reader.c.exec = func(ctx context.Context, s *store.Session, b *store.Batch, p phase) error {
		if err := reader.exec(ctx, s, b, p); err != nil || p != phaseWrite || broken.IntN(20) > 0 {
			return err
		}
		return errors.New("the answer to this COMMIT is lost")
	}
	var running sync.WaitGroup
	running.Go(reader.c.run)
	f := &fixture{Ledger: l, t: t}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		f.open(name, 50*money.USD, 0, KeyLimits{})
	}

	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(i), 7))
			for range 60 {
				f.anything(ctx, rnd, names[rnd.IntN(len(names))], time0)
			}
		})
	}
	callers.Wait()
	l.queue.close()
	running.Wait()
	if reader.looks < 20 || reader.rows < 20 || reader.changedByOthers < 5 {
		t.Errorf("rows were known at %d batches, %d in all, and not at %d", reader.looks, reader.rows, reader.changedByOthers)
	}
}

// anything makes one random change to the books of an account.
func (f *fixture) anything(ctx context.Context, rnd *rand.Rand, account string, c *clock) {
	if rnd.IntN(12) > 0 {
		f.request(ctx, rnd, account)
		return
	}
	rpm, budget, level := int64(rnd.IntN(100)), money.Amount(rnd.Int64N(int64(40*money.USD))), money.Amount(rnd.Int64N(int64(60*money.USD)))
	err := f.db.Update(ctx, func(tx *store.Tx) error {
		switch rnd.IntN(6) {
		case 0:
			_, err := CreditTx(tx, account, money.USD, "")
			return err
		case 1:
			return ChangeKeyTx(tx, account+"_key", KeyLimits{RPM: &rpm, DailyBudget: &budget})
		case 2:
			return ChangeKeyTx(tx, account+"_key", KeyLimits{})
		case 3:
			return SetLowTx(tx, account, &level)
		case 4:
			return RecordUseTx(tx, map[string]time.Duration{account + "_key": 0})
		}
		c.add([]time.Duration{13 * time.Hour, -5 * time.Hour}[rnd.IntN(2)])
		return nil
	})
	if err != nil {
		f.t.Error(err)
	}
}

// request makes a request that is refused, charged or released.
func (f *fixture) request(ctx context.Context, rnd *rand.Rand, account string) {
	a := admission(account, money.Amount(rnd.Int64N(int64(2*money.USD))))
	if rnd.IntN(10) == 0 {
		a.Amount = money.Max
	}
	a.FreeDaily = int64(rnd.IntN(2) * 1000)
	h, err := f.Admit(ctx, a)
	if err != nil {
		return // refused: by version, rate, budget or balance
	}
	if rnd.IntN(3) == 0 {
		h.Release(failed())
		return
	}
	if err := h.Settle(ctx, billed(money.Amount(rnd.Int64N(int64(a.Amount)+1)))); err != nil {
		f.t.Errorf("settle: %v", err)
	}
}

func TestCachedRowsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBatch(nil, nil, locks{})
	b.cached.accounts, b.cached.keys = map[string]books.AccountRow{"old": {ID: "old"}}, map[string]books.KeyRow{}
	for i := range maxCachedRows {
		id := string(rune('a'+i%26)) + time.Duration(i).String()
		b.Accounts[id] = &books.AccountRow{ID: id}
	}
	var k rowCache
	k.store(b)
	if k.accounts != nil {
		t.Error("rows of a database without a version are known")
	}
	version, later := versions(t)
	b.version = version
	k.store(b)
	if _, known := k.accounts["old"]; known || len(k.accounts) != maxCachedRows {
		t.Errorf("%d rows are known, want the %d of the batch", len(k.accounts), maxCachedRows)
	}
	if !k.version.Same(b.version) || len(k.at(b.version).accounts) != len(k.accounts) || k.at(later).accounts != nil {
		t.Error("rows are not known at their version alone")
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
