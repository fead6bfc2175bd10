package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"tollgate/internal/store"
)

// snapshotCommits is the number of commits of benchSnapshot while a snapshot is open.
const snapshotCommits = 15_000

// snapshotTables are the tables with a column of their own; "" stands for all.
var snapshotTables = []string{"", "node", "node_batch", "ledger_account", "ledger_key", "ledger_day", "ledger_limit"}

// benchSnapshot prints what a commit costs while a snapshot is open on PostgreSQL, as with pg_dump.
// The server keeps each version of a row that changes meanwhile, and each change walks over the
// versions. One caller makes pairs, so each commit has one operation.
func benchSnapshot(o options) error {
	if o.postgres == "" {
		log.Print("snapshot: SQLite keeps no versions of rows")
		return nil
	}
	fmt.Printf("### A snapshot of PostgreSQL, open over %d commits\n\n", snapshotCommits)
	out := newTable(append([]string{"accounts", "commits so far", "ms/commit", "pages/commit"}, snapshotTables[1:]...)...)
	defer out.print()
	for _, accounts := range nodeAccounts {
		if err := measureSnapshot(o, accounts, out); err != nil {
			return err
		}
	}
	return nil
}

func measureSnapshot(o options, accounts int, out *table) (err error) {
	ctx := context.Background()
	url, drop, err := freshDatabase(ctx, o, "PostgreSQL")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	l, err := openLedger(ctx, url, accounts, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.leave(ctx)) }()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	const steps = 5
	for step := range steps + 1 {
		if step == 1 {
			if _, err := conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM ledger_account`); err != nil {
				return err
			}
		}
		before, err := buffers(ctx, url)
		if err != nil {
			return err
		}
		pairs, start := snapshotCommits/2/steps, time.Now()
		for n := range pairs {
			if _, err := l.pair(ctx, n%accounts); err != nil {
				return err
			}
		}
		took := time.Since(start)
		after, err := buffers(ctx, url)
		if err != nil {
			return err
		}
		name := "no snapshot"
		if step > 0 {
			name = fmt.Sprint(step * pairs * 2)
		}
		cells := []string{fmt.Sprint(accounts), name, millis(took / time.Duration(2*pairs))}
		for _, table := range snapshotTables {
			cells = append(cells, fmt.Sprint((after[table]-before[table])/int64(2*pairs)))
		}
		out.add(cells...)
	}
	return nil
}

// buffers returns how often the server has read a page of each table and its indexes so far. The name
// "" has the sum.
func buffers(ctx context.Context, url string) (pages map[string]int64, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	<-time.After(2 * time.Second) // sessions report their statistics once a second
	rows, err := conn.Query(ctx, `SELECT relname, heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read FROM pg_statio_user_tables
		WHERE idx_blks_hit IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	pages = map[string]int64{}
	var name string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error {
		pages[name] += n
		pages[""] += n
		return nil
	})
	return pages, err
}
