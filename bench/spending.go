package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/movement"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// benchUsage prints the time of usage queries over many requests, and the disk space of archived
// charges.
func benchUsage(o options) error {
	fmt.Printf("### Usage: %d requests of %d accounts over %d days; %d archived charges\n\n", o.receipts, bookAccounts, bookDays, o.charges)
	queries := newTable("database", "query", "rows", "p50 ms", "max ms")
	archive := newTable("database", "bytes per charge", "GB for 100 million", "page of movements, ms", "one charge by request id, ms")
	err := o.onEngines(func(engine string) error {
		if err := onFresh(o, engine, func(ctx context.Context, db *store.DB) error {
			return queryUsage(ctx, o, engine, db, queries)
		}); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		return onFresh(o, engine, func(ctx context.Context, db *store.DB) error { return archiveCharges(ctx, o, engine, db, archive) })
	})
	queries.print()
	archive.print()
	return err
}

// onFresh calls fn with an empty database.
func onFresh(o options, engine string, fn func(ctx context.Context, db *store.DB) error) (err error) {
	ctx := context.Background()
	url, drop, err := freshDatabase(ctx, o, engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	return onMigrated(ctx, url, func(db *store.DB) error { return fn(ctx, db) })
}

// onMigrated migrates the database at url to the current schema and calls fn with it.
func onMigrated(ctx context.Context, url string, fn func(db *store.DB) error) (err error) {
	db, err := store.Open(ctx, url, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrate(ctx); err != nil {
		return err
	}
	return fn(db)
}

// queryRuns is the number of times each query runs.
const queryRuns = 15

// queryUsage writes books and runs the usage queries of customers and operators.
func queryUsage(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
	if err := writeBooks(ctx, db, int64(o.receipts), bookAccounts); err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	if err := db.Update(ctx, func(tx *store.Tx) error { _, err := tx.Exec(`ANALYZE`); return err }); err != nil {
		return err
	}
	today, err := todayOf(ctx, db)
	if err != nil {
		return err
	}
	account := fmt.Sprintf("acct_%s%d", benchPad, 1000)
	for _, query := range []struct {
		name string
		q    spending.Query
	}{
		{"one account, 30 days, by day and model", spending.Query{Account: account, Since: today - 29,
			By: []spending.By{spending.ByDay, spending.ByModel}}},
		{"one account, all days, by key", spending.Query{Account: account, By: []spending.By{spending.ByKey}}},
		{"all accounts, today, by account", spending.Query{Since: today, By: []spending.By{spending.ByAccount}}},
		{"all accounts, 30 days, by day", spending.Query{Since: today - 29, By: []spending.By{spending.ByDay}}},
		{"all accounts, 30 days, by account", spending.Query{Since: today - 29, By: []spending.By{spending.ByAccount}}},
		{"all accounts, all days, by model and line", spending.Query{By: []spending.By{spending.ByModel, spending.ByLine}}},
	} {
		query.q.Limit = 10_000
		rows := 0
		durations, err := measureReads(ctx, db, func(tx *store.Tx) error {
			result, err := spending.ReadTx(tx, query.q)
			rows = len(result)
			return err
		})
		if err != nil {
			return err
		}
		out.add(engine, query.name, fmt.Sprint(rows), millis(percentile(durations, 0.5)), millis(durations[len(durations)-1]))
	}
	report, err := audit.Run(ctx, db)
	if err == nil && !report.OK {
		err = fmt.Errorf("the books do not agree: %+v", report.Differences[:min(3, len(report.Differences))])
	}
	return err
}

// archiveChunk is the number of charges archived in one transaction.
const archiveChunk = 500

// archiveCharges archives charges of many accounts. It measures their size on disk and the time to
// read them.
func archiveCharges(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
	empty, err := chargeBytes(ctx, db)
	if err != nil {
		return err
	}
	now := time.Now()
	var request, account string
	for from := 0; from < o.charges; from += archiveChunk {
		account = fmt.Sprintf("acct_%s%d", benchPad, 1000+from/archiveChunk%bookAccounts)
		begin := int64(from / archiveChunk / bookAccounts * archiveChunk)
		err := db.Update(ctx, func(tx *store.Tx) error {
			var folded audit.Folded
			for i := range int64(archiveChunk) {
				seq, cost := begin+i+1, money.Amount(1_234_567+i)
				request = id.At("req_", now.Add(time.Duration(seq)*time.Minute))
				charge := audit.Charge{Seq: seq, Model: fmt.Sprint("model-", i%bookModels), Amount: cost, Balance: 1e12 - 1_300_000*money.Amount(seq),
					EndedMS: now.UnixMilli() + seq*60_000}
				folded.Charges = append(folded.Charges, movement.NewCharge(request, "", charge))
				folded.Move(seq, charge.Balance, -cost)
			}
			return movement.ArchiveTx(tx, map[string]*audit.Folded{account: &folded})
		})
		if err != nil {
			return err
		}
	}
	full, err := chargeBytes(ctx, db)
	if err != nil {
		return err
	}
	page, err := measureReads(ctx, db, func(tx *store.Tx) error {
		_, _, err := movement.ListTx(tx, movement.Selection{Account: account, Limit: 50})
		return err
	})
	if err != nil {
		return err
	}
	byRequest, err := measureReads(ctx, db, func(tx *store.Tx) error {
		_, err := movement.ChargeTx(tx, request)
		return err
	})
	if err != nil {
		return err
	}
	perCharge := float64(full-empty) / float64(o.charges)
	out.add(engine, fmt.Sprintf("%.0f", perCharge), fmt.Sprintf("%.1f", perCharge*100_000_000/1e9), millis(percentile(page, 0.5)),
		millis(percentile(byRequest, 0.5)))
	return nil
}

// measureReads runs read several times and returns the sorted durations.
func measureReads(ctx context.Context, db *store.DB, read func(tx *store.Tx) error) (durations []time.Duration, err error) {
	for range queryRuns {
		start := time.Now()
		if err := db.View(ctx, read); err != nil {
			return nil, err
		}
		durations = append(durations, time.Since(start))
	}
	slices.Sort(durations)
	return durations, nil
}

// chargeBytes returns the size of the archived charges on disk: the whole file on SQLite, and the
// table with its indexes on PostgreSQL.
func chargeBytes(ctx context.Context, db *store.DB) (size int64, err error) {
	text := `SELECT pg_total_relation_size('ledger_charge')`
	if db.Dialect() == store.SQLite {
		text = `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
	}
	err = db.View(ctx, func(tx *store.Tx) error { return tx.QueryRow(text).Scan(&size) })
	return size, err
}
