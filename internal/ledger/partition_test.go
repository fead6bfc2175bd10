package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/store/storetest"
)

// serveAt ends n requests of an account with ids and times of at. Every third fails.
func (f *fixture) serveAt(account string, at time.Time, n int) (requests []string) {
	f.t.Helper()
	for i := range n {
		a := admission(account, 1000)
		a.Request, a.Received = id.At("req_", at), at
		h, err := f.Admit(context.Background(), a)
		if err != nil {
			f.t.Fatal(err)
		}
		requests = append(requests, a.Request)
		if i%3 == 2 {
			h.Release(failed())
		} else if err := h.Settle(context.Background(), billed(100)); err != nil {
			f.t.Fatal(err)
		}
	}
	return requests
}

// fold runs Fold and an audit.
func (f *fixture) fold() {
	f.t.Helper()
	if err := f.Fold(context.Background()); err != nil {
		f.t.Fatal(err)
	}
	f.checkAudit()
}

// count returns the result of a statement.
func (f *fixture) count(text string, args ...any) (n int64) {
	f.t.Helper()
	storetest.View(f.t, f.db, func(tx *store.Tx) error { return tx.QueryRow(text, args...).Scan(&n) })
	return n
}

// partitions returns the partitions of a table without their common prefix, in order.
func (f *fixture) partitions(table string) (names []string) {
	f.t.Helper()
	if f.db.Dialect() == store.SQLite {
		return nil
	}
	storetest.View(f.t, f.db, func(tx *store.Tx) (err error) {
		names, err = store.Column[string](tx, `SELECT CAST(c.relname AS text) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = to_regclass($1) AND c.relname <> 'ledger_receipt_rest'`, table)
		return err
	})
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "ledger_receipt_")
	}
	slices.Sort(names)
	return names
}

// deletions returns the number of rows ever deleted from the receipts on PostgreSQL.
func (f *fixture) deletions() int64 {
	f.t.Helper()
	return f.count(`SELECT CAST(COALESCE(SUM(n_tup_del), 0) AS BIGINT) FROM pg_stat_user_tables WHERE relname LIKE 'ledger_receipt%'`)
}

// TestReceiptsAge lets two accounts make requests each day for four months. Their receipts leave the
// log after the retention, on PostgreSQL by the drop of whole partitions and without the deletion of
// a row. The books agree all the time, and every charge stays.
func TestReceiptsAge(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		const retention, days = 30 * 24 * time.Hour, 120
		f := start(t, db, func(o *Options) { o.Retention = retention })
		f.open("a", 10*money.USD, 0, KeyLimits{})
		f.open("b", 10*money.USD, 0, KeyLimits{})
		for day := range days {
			f.serveAt("a", c.now(), 3)
			f.serveAt("b", c.now(), 1)
			c.add(24 * time.Hour)
			if day%10 == 9 {
				f.fold()
			} else if err := f.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
			list := f.requests(requestlog.Selection{Limit: 5000})
			oldest := time.UnixMilli(list[len(list)-1].CreatedMS)
			kept := c.now().Sub(oldest)
			if day > 40 && (kept < retention-24*time.Hour || kept > retention+4*24*time.Hour) {
				t.Errorf("day %d: the oldest receipt is %s old, want the retention of %s less a day to four days more", day, kept, retention)
			}
		}
		if n := f.count(`SELECT COUNT(*) FROM ledger_charge`); n < 3*(days-40) || n > 3*(days-29) {
			t.Errorf("%d charges are kept, want %d to %d", n, 3*(days-40), 3*(days-29))
		}
		if entries := f.entries("a", 50); len(entries) != 1+2*days {
			t.Errorf("account a has %d movements, want %d", len(entries), 1+2*days)
		}
		if db.Dialect() == store.PostgreSQL {
			if n := len(f.partitions("ledger_receipt")); n < 15 || n > 20 {
				t.Errorf("got the %d partitions %q, want 15 to 20", n, f.partitions("ledger_receipt"))
			}
			if n := f.count(`SELECT COUNT(*) FROM ledger_receipt_rest`); n != 0 {
				t.Errorf("%d receipts are outside of the partitions, want none", n)
			}
			if n := f.deletions(); n != 0 {
				t.Errorf("%d receipts were deleted row by row, want none", n)
			}
		}
	})
}

// smallStep is the number of receipts in a step of the ledger of startSmall.
const smallStep = 30

func startSmall(t *testing.T, db *store.DB) *fixture {
	t.Helper()
	f := start(t, db)
	f.foldRows = smallStep
	return f
}

// expirePartition fills a partition and lets it expire: account a has more receipts than a step folds, other
// accounts have a few. It returns the requests with a charge.
func (f *fixture) expirePartition(c *clock) (charged []string) {
	f.t.Helper()
	f.Refused(Refusal{Request: id.At("req_", c.now()), Account: "a0", Key: "a0_key", Model: "m", Status: 402, Code: "insufficient_quota",
		Received: c.now()})
	for i := range 4 {
		account := fmt.Sprintf("a%d", i)
		f.open(account, 10*money.USD, 0, KeyLimits{})
		n := map[bool]int{true: 4 * smallStep, false: 4}[i == 1]
		for j, request := range f.serveAt(account, c.now(), n) {
			if j%3 != 2 {
				charged = append(charged, request)
			}
		}
	}
	c.add(120 * 24 * time.Hour)
	f.serveAt("a1", c.now(), 1)
	return charged
}

// TestFoldInSteps folds a partition step by step, each by another process, as if the one before it
// was killed. After each step the books agree, and every charge and every movement is there once.
func TestFoldInSteps(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := startSmall(t, db)
		charged := f.expirePartition(c)
		movements := f.entries("a1", 100)
		usage := f.usage("a1")
		check := func(step string) {
			t.Helper()
			f.checkAudit()
			if got := f.entries("a1", 100); !slices.Equal(got, movements) {
				t.Errorf("%s: the account has %d movements, want %d", step, len(got), len(movements))
			}
			if got := f.usage("a1"); got.Total != usage.Total || got.Balance != usage.Balance {
				t.Errorf("%s: got usage %+v, want %+v", step, got, usage)
			}
			storetest.View(t, db, func(tx *store.Tx) error {
				for _, request := range charged {
					_, err := requestlog.GetTx(tx, request)
					if err != nil {
						_, err = movement.ChargeTx(tx, request)
					}
					if err != nil {
						return fmt.Errorf("%s: charge of %s: %w", step, request, err)
					}
				}
				return nil
			})
		}
		step := func(ctx context.Context) (bool, error) { return f.foldSome(ctx, clearedLimits{}) }
		if db.Dialect() == store.PostgreSQL {
			step = func(ctx context.Context) (bool, error) { return f.foldOld(ctx, clearedLimits{}) }
			if more, err := step(t.Context()); more || err != nil {
				t.Fatal("a step without an old partition:", more, err)
			}
			if moved, err := requestlog.Retire(t.Context(), db, f.opts.Retention); !moved || err != nil {
				t.Fatal("retire:", moved, err)
			}
			check("retired")
			if moved, err := requestlog.Retire(t.Context(), db, f.opts.Retention); moved || err != nil {
				t.Fatal("a second partition was retired:", moved, err)
			}
			if err := requestlog.DropOld(t.Context(), db); err != nil || len(f.partitions("ledger_receipt_old")) != 1 {
				t.Fatal("a partition was dropped before its end:", f.partitions("ledger_receipt_old"), err)
			}
		}
		steps := 0
		for more := true; more; steps++ {
			f.close()
			f.Ledger = startSmall(t, db).Ledger
			var err error
			if more, err = step(t.Context()); err != nil {
				t.Fatal(err)
			}
			check(fmt.Sprintf("step %d", steps))
		}
		if rows := 4*smallStep + 3*4 + 1; steps <= rows/smallStep || steps > rows/smallStep+2 {
			t.Errorf("got %d steps for %d receipts, want %d or %d", steps, rows, rows/smallStep+1, rows/smallStep+2)
		}
		for range 2 {
			if err := requestlog.DropOld(t.Context(), db); err != nil {
				t.Fatal(err)
			}
			check("dropped")
		}
		f.fold()
		if list := f.requests(requestlog.Selection{}); len(list) != 1 {
			t.Errorf("%d receipts are left, want 1: %+v", len(list), list)
		}
		if n := f.count(`SELECT COUNT(*) FROM ledger_receipt_old`); n != 0 {
			t.Errorf("%d old receipts are left, want none", n)
		}
	})
}

// TestFoldWalksAnIndex checks that a step of Fold reads no other receipts.
func TestFoldWalksAnIndex(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := startSmall(t, db)
		f.expirePartition(c)
		if db.Dialect() == store.PostgreSQL {
			if moved, err := requestlog.Retire(t.Context(), db, f.opts.Retention); !moved || err != nil {
				t.Fatal(moved, err)
			}
			if _, err := f.foldOld(t.Context(), clearedLimits{}); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Exec(t, db, `ANALYZE`)
		storetest.View(t, db, func(tx *store.Tx) error {
			if err := tx.ByIndex(); err != nil {
				return err
			}
			storetest.WalksIndex(t, tx, "the next receipts", `SELECT `+figureColumns+`, seq FROM `+nextOld, 100)
			storetest.WalksIndex(t, tx, "the oldest of an account", `SELECT seq FROM `+audit.Unfolded+` AND account = $1 ORDER BY seq LIMIT 1`, "a1")
			storetest.WalksIndex(t, tx, "a page of movements",
				`SELECT seq FROM `+audit.Unfolded+` AND account = $1 AND seq < $2 AND seq >= $3 AND cost_nano > 0 ORDER BY seq DESC LIMIT $4`,
				"a1", 1<<60, 0, 50)
			return nil
		})
	})
}

// TestLateReceipts settles requests whose ids are older than the log, or whose day is not that of the
// id. None is lost or counted twice, whether their partition is in the log, being folded, dropped, or
// was never there.
func TestLateReceipts(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		first := c.now()
		open := func() *Hold {
			t.Helper()
			a := admission("a1", 1000)
			a.Request, a.Received = id.At("req_", first), first
			h, err := f.Admit(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			return h
		}
		settle := func(h *Hold) {
			t.Helper()
			if err := h.Settle(t.Context(), billed(7)); err != nil {
				t.Fatal(err)
			}
			f.checkAudit()
		}
		f.open("a1", 10*money.USD, 0, KeyLimits{})
		before := []*Hold{open(), open(), open()} // admitted on the first day
		f.serveAt("a1", first, 5)
		c.add(120 * 24 * time.Hour)
		now := []*Hold{open(), open(), open()} // a node with a clock far behind
		settle(before[0])
		settle(now[0])
		if db.Dialect() == store.PostgreSQL {
			if _, err := requestlog.Retire(t.Context(), db, f.opts.Retention); err != nil {
				t.Fatal(err)
			}
			settle(before[1])
			settle(now[1])
			for more := true; more; f.checkAudit() {
				var err error
				if more, err = f.foldOld(t.Context(), clearedLimits{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		f.fold()
		if f.db.Dialect() == store.SQLite {
			settle(before[1])
			settle(now[1])
		}
		settle(before[2])
		settle(now[2])
		f.serveAt("a1", time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC), 2) // older than every partition
		f.serveAt("a1", c.now().Add(1000*24*time.Hour), 2)              // newer
		for range 3 {
			f.fold()
		}
		// A receipt of today stays, whatever its id.
		found := map[string]bool{}
		for _, r := range f.requests(requestlog.Selection{Account: "a1"}) {
			found[r.ID] = true
		}
		for i, h := range now {
			if !found[h.open.Row.ID] {
				t.Errorf("the receipt %d of today with an old id is missing, want it kept", i)
			}
		}
		c.add(26 * time.Hour)
		f.fold()
		if list := f.requests(requestlog.Selection{Account: "a1"}); len(list) != 2 || list[0].CreatedMS < c.now().UnixMilli() {
			t.Errorf("%d receipts are left: want those of the clock ahead", len(list))
		}
		if entries := f.entries("a1", 3); len(entries) != 1+6+4+1*2+2 {
			t.Errorf("got %d movements, want %d", len(entries), 1+6+4+1*2+2)
		}
		f.checkAudit()
	})
}

// TestRetentionChanges lowers and raises the retention. Existing partitions keep their width.
func TestRetentionChanges(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.open("a", 10*money.USD, 0, KeyLimits{})
		serve := func(days int) {
			t.Helper()
			for range days {
				f.serveAt("a", c.now(), 1)
				c.add(day)
				f.fold()
			}
		}
		oldest := func(low, high time.Duration) {
			t.Helper()
			list := f.requests(requestlog.Selection{})
			if age := c.now().Sub(time.UnixMilli(list[len(list)-1].CreatedMS)); age < low || age > high {
				t.Errorf("the oldest receipt is %s old, want %s to %s", age, low, high)
			}
		}
		serve(30)
		oldest(30*day, 30*day)
		f.opts.Retention = 2 * day // partitions of a day from now on
		f.fold()
		oldest(1*day, (2+7)*day)
		serve(20)
		oldest(1*day, 3*day)
		f.opts.Retention = 36 * day
		serve(50)
		oldest(35*day, (36+3)*day)
	})
}

// TestPartitionsAreExtended checks the ranges of partitions, also around receipts of nodes whose
// clocks are ahead.
func TestPartitionsAreExtended(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		if db.Dialect() == store.SQLite {
			f := start(t, db)
			f.fold()
			if n := f.count(`SELECT COUNT(*) FROM sqlite_master WHERE name LIKE 'ledger_receipt_2%'`); n != 0 {
				t.Errorf("SQLite has %d partitions, want none", n)
			}
			return
		}
		f := start(t, db) // on May 4
		f.open("a", 10*money.USD, 0, KeyLimits{})
		want := func(names ...string) {
			t.Helper()
			if got := f.partitions("ledger_receipt"); !slices.Equal(got, names) {
				t.Errorf("partitions %q, want %q", got, names)
			}
		}
		want("20260504_20260511")
		f.serveAt("a", c.now(), 1)
		c.add(4 * 24 * time.Hour)
		f.fold()
		want("20260504_20260511")
		f.serveAt("a", c.now().Add(5*24*time.Hour), 1) // a clock ahead: May 13
		c.add(24 * time.Hour)
		f.fold() // on May 9
		want("20260504_20260511", "20260511_20260513")
		c.add(2 * 24 * time.Hour)
		f.fold() // on May 11; the 13th has a receipt in ledger_receipt_rest
		want("20260504_20260511", "20260511_20260513")
		c.add(24 * time.Hour)
		f.fold()
		want("20260504_20260511", "20260511_20260513", "20260514_20260521")
		// The database's clock is wrong for a while.
		c.add(400 * 24 * time.Hour)
		if err := requestlog.Extend(t.Context(), db, f.opts.Retention); err != nil {
			t.Fatal(err)
		}
		c.add(-400 * 24 * time.Hour)
		c.add(8 * 24 * time.Hour)
		f.serveAt("a", c.now(), 1)
		f.fold()
		want("20260504_20260511", "20260511_20260513", "20260514_20260521", "20260521_20260528", "20270616_20270623")
		if n := f.count(`SELECT COUNT(*) FROM ledger_receipt_rest`); n != 1 {
			t.Errorf("%d receipts are outside of the partitions, want 1", n)
		}
	})
}

// TestAnAuditKeepsPartitions checks that no partition is moved or dropped while an audit, a dump or
// another long transaction reads receipts.
func TestAnAuditKeepsPartitions(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		f := start(t, db)
		f.expirePartition(c)
		if db.Dialect() == store.SQLite {
			f.fold()
			return
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			if err := tx.Keep("ledger_receipt_old"); err != nil {
				return err
			}
			return f.Fold(t.Context())
		})
		if n := len(f.partitions("ledger_receipt_old")); n != 0 {
			t.Fatalf("%d partitions were moved during an audit, want none", n)
		}
		if moved, err := requestlog.Retire(t.Context(), db, f.opts.Retention); !moved || err != nil {
			t.Fatal(moved, err)
		}
		storetest.View(t, db, func(tx *store.Tx) error {
			if err := tx.Keep("ledger_receipt_old"); err != nil {
				return err
			}
			return f.Fold(t.Context()) // folds, but cannot drop
		})
		if n := len(f.partitions("ledger_receipt_old")); n != 1 {
			t.Errorf("got %d moved partitions during an audit, want 1", n)
		}
		f.checkAudit()
		f.fold()
		if old := f.partitions("ledger_receipt_old"); len(old) != 0 {
			t.Errorf("got the moved partitions %q after the audit, want none", old)
		}
	})
}

// TestTheFileStaysSmall writes and deletes receipts at a constant rate. After the first round the
// file of SQLite does not grow. Failed requests leave no charge behind.
func TestTheFileStaysSmall(t *testing.T) {
	t.Parallel()
	eachClock(t, func(t *testing.T, db *store.DB, c *clock) {
		if db.Dialect() != store.SQLite {
			return // TestReceiptsAge checks that partitions are dropped
		}
		const retention, daily, days = 10 * 24 * time.Hour, 60, 60
		f := start(t, db, func(o *Options) { o.Retention = retention })
		f.open("a", 100*money.USD, 0, KeyLimits{})
		var size []int64 // pages at the end of each day
		for range days {
			for range daily {
				f.serveFailed("a", c)
			}
			c.add(24 * time.Hour)
			if err := f.Fold(t.Context()); err != nil {
				t.Fatal(err)
			}
			size = append(size, f.count(`SELECT page_count FROM pragma_page_count`))
		}
		full := size[11]                              // the retention, the day that ends, and the day before midnight
		if last := size[days-1]; last > full+full/8 { // rows of days and batches are kept
			t.Errorf("the file has %d pages after %d days, want at most an eighth more than the %d after 12 days", last, days, full)
		}
		if n := f.count(`SELECT COUNT(*) FROM ledger_receipt`); n > 12*daily {
			t.Errorf("got %d receipts, want at most %d", n, 12*daily)
		}
	})
}

// serveFailed ends a request without a charge.
func (f *fixture) serveFailed(account string, c *clock) {
	f.t.Helper()
	a := admission(account, 1000)
	a.Request, a.Received = id.At("req_", c.now()), c.now()
	h, err := f.Admit(context.Background(), a)
	if err != nil {
		f.t.Fatal(err)
	}
	h.Release(failed())
}
