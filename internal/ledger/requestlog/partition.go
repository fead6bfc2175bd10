package requestlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// On PostgreSQL, ledger_receipt has a partition for each few days of request ids, so that expired
// receipts are removed by dropping a table. Receipts outside of all partitions are in
// ledger_receipt_rest. SQLite has no partitions, and the functions of this file are no-ops there.

const (
	// partsOfRetention is the number of partitions in the retention. Lists of an account look into
	// each partition, and a receipt may stay for one partition longer than the retention.
	partsOfRetention = 12
	// daysAhead is the number of days after today for which Extend creates partitions. Nodes whose clock
	// is further ahead write to ledger_receipt_rest.
	daysAhead = 2
	// tableWait bounds the wait for the lock of a table. Requests queue behind the waiting statement.
	tableWait = "200ms"
	// scanTime bounds a statement while the transaction has the lock of a table.
	scanTime = "1s"
)

// The tables with partitions.
const (
	current = "ledger_receipt"
	old     = "ledger_receipt_old"
)

// RowsTable returns the table whose receipts are deleted row by row: on PostgreSQL only the receipts
// outside of the partitions.
func RowsTable(d store.Dialect) string {
	if d == store.PostgreSQL {
		return current + "_rest"
	}
	return current
}

// partition is a range of UTC days, first inclusive and end exclusive.
type partition struct{ first, end int64 }

const (
	day        = 24 * time.Hour
	nameLayout = "20060102"
)

func dayStart(n int64) time.Time { return time.UnixMilli(n * day.Milliseconds()).UTC() }

// firstID returns the first request id of a day.
func firstID(n int64) string { return id.First("req_", dayStart(n)) }

// table returns the name of the partition's table.
func (p partition) table() string {
	return current + "_" + dayStart(p.first).Format(nameLayout) + "_" + dayStart(p.end).Format(nameLayout)
}

// parsePartition returns the partition of a table. ok is false for ledger_receipt_rest.
func parsePartition(table string) (p partition, ok bool) {
	first, end, _ := strings.Cut(strings.TrimPrefix(table, current+"_"), "_")
	from, err := time.Parse(nameLayout, first)
	to, err2 := time.Parse(nameLayout, end)
	return partition{books.DayOf(from.UnixMilli()), books.DayOf(to.UnixMilli())}, err == nil && err2 == nil
}

// firstMissing returns the first range of days from today to today + daysAhead without a partition.
func firstMissing(existing []partition, today, width int64) (p partition, ok bool) {
	for n := today; n <= today+daysAhead; {
		p = partition{n, n + width}
		covered := false
		for _, e := range existing {
			switch {
			case e.first <= n && n < e.end:
				n, covered = e.end, true
			case e.first > n:
				p.end = min(p.end, e.first)
			}
		}
		if !covered {
			return p, true
		}
	}
	return partition{}, false
}

// partitionsTx returns the partitions of a table, oldest first.
func partitionsTx(tx *store.Tx, parent string) ([]partition, error) {
	tables, err := store.Column[string](tx, `SELECT CAST(c.relname AS text) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = to_regclass($1)`, parent)
	var list []partition
	for _, table := range tables {
		if p, ok := parsePartition(table); ok {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b partition) int { return int(a.first - b.first) })
	return list, err
}

// Extend creates the partitions of today and the next days. The retention determines their width;
// existing partitions keep their width. If another transaction holds a lock for too long, Extend
// returns nil, and the next call tries again.
func Extend(ctx context.Context, db *store.DB, retention time.Duration) error {
	if db.Dialect() == store.SQLite {
		return nil
	}
	width := max(1, int64(retention/partsOfRetention/day))
	for more := true; more; {
		more = false
		if err := change(ctx, db, func(tx *store.Tx) (err error) {
			more, err = extendTx(tx, width)
			return err
		}); err != nil {
			return fmt.Errorf("create a partition of the request log (until then, its requests are removed row by row): %w", err)
		}
	}
	return nil
}

// extendTx creates one partition. It returns false if none is missing.
func extendTx(tx *store.Tx, width int64) (bool, error) {
	now, err := tx.NowMS()
	if err != nil {
		return false, err
	}
	existing, err := partitionsTx(tx, current)
	if err != nil {
		return false, err
	}
	moved, err := partitionsTx(tx, old)
	if err != nil {
		return false, err
	}
	existing = append(existing, moved...)
	for {
		p, ok := firstMissing(existing, books.DayOf(now), width)
		if !ok {
			return false, nil
		}
		n, err := daysWithoutRowsTx(tx, p)
		if err != nil {
			return false, err
		}
		if n == 0 { // receipts of this day are in ledger_receipt_rest and stay there
			existing = append(existing, partition{p.first, p.first + 1})
			continue
		}
		p.end = p.first + n
		if _, err := tx.Exec(`CREATE TABLE ` + p.table() + ` (LIKE ` + current + ` INCLUDING DEFAULTS)`); err != nil {
			return false, err
		}
		_, err = tx.Exec(fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')`,
			current, p.table(), firstID(p.first), firstID(p.end)))
		return true, err
	}
}

// daysWithoutRowsTx returns the number of p's first days without receipts in ledger_receipt_rest.
func daysWithoutRowsTx(tx *store.Tx, p partition) (int64, error) {
	for n := p.first; n < p.end; n++ {
		var rows int64
		if err := tx.QueryRow(`SELECT COUNT(*) FROM (SELECT 1 FROM ledger_receipt_rest WHERE id >= $1 AND id < $2 LIMIT 1) AS found`,
			firstID(n), firstID(n+1)).Scan(&rows); err != nil {
			return 0, err
		}
		if rows > 0 {
			return n - p.first, nil
		}
	}
	return p.end - p.first, nil
}

// Retire moves the oldest expired partition to ledger_receipt_old, and reports whether it did so. It
// is a no-op while ledger_receipt_old has a partition, and while another transaction uses the
// tables.
func Retire(ctx context.Context, db *store.DB, retention time.Duration) (moved bool, err error) {
	if db.Dialect() == store.SQLite {
		return false, nil
	}
	err = change(ctx, db, func(tx *store.Tx) error {
		moved = false
		now, err := tx.ExpiryMS()
		if err != nil {
			return err
		}
		left, err := partitionsTx(tx, old)
		if err != nil || len(left) > 0 {
			return err
		}
		existing, err := partitionsTx(tx, current)
		if err != nil || len(existing) == 0 || firstID(existing[0].end) > books.FoldBelow(now, retention) {
			return err
		}
		for _, text := range []string{
			// An audit reads both tables. It must find each receipt in one of them.
			`LOCK TABLE ` + old + ` IN ACCESS EXCLUSIVE MODE NOWAIT`,
			`ALTER TABLE ` + current + ` DETACH PARTITION ` + existing[0].table(),
			`ALTER TABLE ` + old + ` ATTACH PARTITION ` + existing[0].table() + ` FOR VALUES FROM (MINVALUE) TO (MAXVALUE)`,
		} {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		moved = true
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("take an old partition out of the request log: %w", err)
	}
	return moved, nil
}

// DropOld drops the partition in ledger_receipt_old if all of its receipts are folded. It is a no-op
// while another transaction uses the table.
func DropOld(ctx context.Context, db *store.DB) error {
	if db.Dialect() == store.SQLite {
		return nil
	}
	err := change(ctx, db, func(tx *store.Tx) error {
		if err := tx.Lock("ledger_folding", "name", "current"); err != nil {
			return err
		}
		parts, err := partitionsTx(tx, old)
		if err != nil || len(parts) == 0 {
			return err
		}
		var rows int64
		if err := tx.ByIndex(); err != nil {
			return err
		}
		err = tx.QueryRow(`SELECT COUNT(*) FROM (SELECT 1 FROM ` + audit.Unfolded + ` LIMIT 1) AS found`).Scan(&rows)
		if err != nil || rows > 0 {
			return err
		}
		for _, text := range []string{
			`LOCK TABLE ` + old + ` IN ACCESS EXCLUSIVE MODE NOWAIT`,
			`DROP TABLE ` + parts[0].table(),
			`UPDATE ledger_folding SET after_account = '', after_seq = 0, after_id = ''`,
		} {
			if _, err := tx.Exec(text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop an old partition of the request log: %w", err)
	}
	return nil
}

// errInUse means that another transaction holds the lock of a table.
var errInUse = errors.New("another transaction uses the table")

// change runs fn, which changes tables, in a transaction. If a lock is not available soon, change
// returns nil and nothing is done: a change is never urgent, and requests wait behind it.
func change(ctx context.Context, db *store.DB, fn func(tx *store.Tx) error) error {
	err := db.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(`SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)`,
			tableWait, scanTime); err != nil {
			return err
		}
		err := tx.Serialize(current)
		if err == nil {
			err = fn(tx)
		}
		if store.Retryable(err) {
			return fmt.Errorf("%w: %v", errInUse, err) // not wrapped, or Update would retry
		}
		return err
	})
	if errors.Is(err, errInUse) {
		return nil
	}
	return err
}
