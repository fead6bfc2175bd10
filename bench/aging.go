package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/internal/line"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// agingDays is the number of days over which the requests are spread.
const agingDays = 30

// benchAging prints the bytes of a request in each table and index, and the bytes that the database
// writes for a request: when it ends, and when it leaves the request log.
func benchAging(o options) error {
	fmt.Printf("### Request log: %d requests of %d accounts over %d days\n\n", o.receipts, o.accounts[len(o.accounts)-1], agingDays)
	sizes := newTable("database", "table or index", "bytes a request")
	written := newTable("database", "request", "bytes written", "CPU us of this process")
	err := o.onEngines(func(engine string) error { return benchAgingOn(o, engine, sizes, written) })
	sizes.print()
	written.print()
	fmt.Print("Bytes written are those of PostgreSQL's write-ahead log, including a VACUUM, and all that this process writes with SQLite.\n\n")
	return err
}

func benchAgingOn(o options, engine string, sizes, written *table) (err error) {
	ctx := context.Background()
	url, drop, err := freshDatabase(ctx, o, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	var clock atomic.Int64
	clock.Store(time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC).UnixMilli())
	now := func() time.Time { return time.UnixMilli(clock.Load()) }
	accounts := o.accounts[len(o.accounts)-1]
	s, err := openLedger(ctx, url, accounts, store.Options{Now: now})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	s.now = now
	cost := money.Amount(1_000_000)
	s.attempts = []line.AttemptRecord{{Line: "main", Status: 200, LineCost: &cost, FirstByteMS: 312, DurationMS: 2311}}
	step := func(what string, run func() error) error {
		if err := vacuum(ctx, url); err != nil {
			return err
		}
		before, err := bytesWritten(ctx, url)
		if err != nil {
			return err
		}
		cpu, err := ownCPU()
		if err != nil {
			return err
		}
		if err := run(); err != nil {
			return err
		}
		cpuAfter, err := ownCPU()
		if err != nil {
			return err
		}
		after, err := bytesWritten(ctx, url)
		written.add(engine, what, fmt.Sprintf("%.0f", float64(after-before)/float64(o.receipts)),
			fmt.Sprintf("%.0f", float64((cpuAfter-cpu).Microseconds())/float64(o.receipts)))
		return err
	}
	if err := step("ends", func() error {
		for day := range agingDays {
			if err := pairsOfDay(ctx, s, o, accounts, day); err != nil {
				return err
			}
			clock.Add((24 * time.Hour).Milliseconds())
			if err := s.ledger.Fold(ctx); err != nil { // creates the next partition
				return err
			}
		}
		return vacuum(ctx, url)
	}); err != nil {
		return err
	}
	if err := objectSizes(ctx, s.db, engine, o.receipts, sizes); err != nil {
		return err
	}
	clock.Add((150 * 24 * time.Hour).Milliseconds())
	return step("leaves the log", func() error {
		if err := s.ledger.Fold(ctx); err != nil {
			return err
		}
		return vacuum(ctx, url)
	})
}

// pairsOfDay makes the requests of a day, from all accounts in turn.
func pairsOfDay(ctx context.Context, s *ledgerSubject, o options, accounts, day int) error {
	var group sync.WaitGroup
	var next atomic.Int64
	first, end := int64(day*o.receipts/agingDays), int64((day+1)*o.receipts/agingDays)
	next.Store(first)
	failed := make(chan error, o.callers)
	for range o.callers {
		group.Go(func() {
			for n := next.Add(1); n <= end; n = next.Add(1) {
				if _, err := s.pair(ctx, int(n)%accounts); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failed)
	return <-failed
}

// vacuum removes dead rows on PostgreSQL, as autovacuum does in time.
func vacuum(ctx context.Context, url string) error {
	if strings.HasPrefix(url, "sqlite:") {
		return nil
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, `VACUUM`)
	return errors.Join(err, conn.Close(ctx))
}

// bytesWritten returns the bytes that the database has written so far. On PostgreSQL it is the
// position in the server's write-ahead log, which other databases write too.
func bytesWritten(ctx context.Context, url string) (n int64, err error) {
	if strings.HasPrefix(url, "sqlite:") {
		text, err := os.ReadFile("/proc/self/io")
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(line, "wchar: "); ok {
				return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			}
		}
		return 0, errors.New("/proc/self/io has no wchar")
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	err = conn.QueryRow(ctx, `SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS BIGINT)`).Scan(&n)
	return n, errors.Join(err, conn.Close(ctx))
}

// objectSizes adds the sizes of the tables and indexes to which each request adds bytes. Partitions
// and their indexes count as the partitioned table and its indexes.
func objectSizes(ctx context.Context, db *store.DB, engine string, receipts int, out *table) error {
	text := `SELECT name, SUM(pgsize) AS size FROM dbstat WHERE name NOT LIKE 'sqlite_schema' GROUP BY name ORDER BY size DESC`
	if db.Dialect() == store.PostgreSQL {
		text = `SELECT CAST(COALESCE(parent.relname, c.relname) AS text), CAST(SUM(pg_relation_size(c.oid)) AS BIGINT) AS size
			FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class parent ON parent.oid = i.inhparent
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'i') GROUP BY 1 ORDER BY size DESC`
	}
	return db.View(ctx, func(tx *store.Tx) error {
		return tx.Each(func(row store.Row) error {
			var name string
			var size int64
			if err := row.Scan(&name, &size); err != nil {
				return err
			}
			if size*5 > int64(receipts) { // at least a fifth of a byte
				out.add(engine, name, fmt.Sprintf("%.1f", float64(size)/float64(receipts)))
			}
			return nil
		}, text)
	})
}
