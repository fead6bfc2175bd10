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

// benchUsage prints how long questions about usage take beside many requests,
// and what kept charges cost on disk.
func benchUsage(o options) error {
	fmt.Printf("### Usage: %d requests of %d accounts over %d days; %d kept charges\n\n", o.receipts, bookAccounts, bookDays, o.charges)
	asked := newTable("database", "question", "rows", "p50 ms", "most ms")
	kept := newTable("database", "bytes a charge", "GB for 100 million", "a page of movements, ms", "one by its request, ms")
	err := o.onEngines(func(engine string) error {
		if err := onFresh(o, engine, func(ctx context.Context, db *store.DB) error { return askUsage(ctx, o, engine, db, asked) }); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
		return onFresh(o, engine, func(ctx context.Context, db *store.DB) error { return keepCharges(ctx, o, engine, db, kept) })
	})
	asked.print()
	kept.print()
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

// onMigrated calls fn with the database at url, brought to the schema of today.
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

// asks is how often each question is asked.
const asks = 15

// askUsage writes books and asks what people ask.
func askUsage(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
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
	for _, question := range []struct {
		name string
		q    spending.Query
	}{
		{"an account, 30 days, by day and model", spending.Query{Account: account, Since: today - 29,
			By: []spending.By{spending.ByDay, spending.ByModel}}},
		{"an account, all days, by key", spending.Query{Account: account, By: []spending.By{spending.ByKey}}},
		{"all, today, by account", spending.Query{Since: today, By: []spending.By{spending.ByAccount}}},
		{"all, 30 days, by day", spending.Query{Since: today - 29, By: []spending.By{spending.ByDay}}},
		{"all, 30 days, by account", spending.Query{Since: today - 29, By: []spending.By{spending.ByAccount}}},
		{"all, all days, by model and line", spending.Query{By: []spending.By{spending.ByModel, spending.ByLine}}},
	} {
		question.q.Limit = 10_000
		rows := 0
		took, err := timed(ctx, db, func(tx *store.Tx) error {
			found, err := spending.ReadTx(tx, question.q)
			rows = len(found)
			return err
		})
		if err != nil {
			return err
		}
		out.add(engine, question.name, fmt.Sprint(rows), millis(percentile(took, 0.5)), millis(took[len(took)-1]))
	}
	report, err := audit.Run(ctx, db)
	if err == nil && !report.OK {
		err = fmt.Errorf("the books do not agree: %+v", report.Differences[:min(3, len(report.Differences))])
	}
	return err
}

// keptChunk is how many charges a transaction keeps, as when receipts are deleted.
const keptChunk = 500

// keepCharges keeps charges of many accounts, and measures what they take.
func keepCharges(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
	empty, err := chargeBytes(ctx, db)
	if err != nil {
		return err
	}
	now := time.Now()
	var some, account string
	for from := 0; from < o.charges; from += keptChunk {
		account = fmt.Sprintf("acct_%s%d", benchPad, 1000+from/keptChunk%bookAccounts)
		begin := int64(from / keptChunk / bookAccounts * keptChunk)
		err := db.Update(ctx, func(tx *store.Tx) error {
			var chain audit.Chain
			charges := make([]audit.Charge, 0, keptChunk)
			for i := range int64(keptChunk) {
				seq, cost := begin+i+1, money.Amount(1_234_567+i)
				some = id.At("req_", now.Add(time.Duration(seq)*time.Minute))
				kept := audit.Charge{Seq: seq, Model: fmt.Sprint("model-", i%bookModels), Amount: cost, Balance: 1e12 - 1_300_000*money.Amount(seq),
					EndedMS: now.UnixMilli() + seq*60_000}
				charges = append(charges, movement.NewCharge(some, "", kept))
				chain.Move(seq, kept.Balance, -cost)
			}
			if err := chain.RecordTx(tx, account); err != nil {
				return err
			}
			return movement.ArchiveTx(tx, account, charges)
		})
		if err != nil {
			return err
		}
	}
	full, err := chargeBytes(ctx, db)
	if err != nil {
		return err
	}
	page, err := timed(ctx, db, func(tx *store.Tx) error {
		_, _, err := movement.ListTx(tx, movement.Selection{Account: account, Limit: 50})
		return err
	})
	if err != nil {
		return err
	}
	one, err := timed(ctx, db, func(tx *store.Tx) error {
		_, err := movement.ChargeTx(tx, some)
		return err
	})
	if err != nil {
		return err
	}
	each := float64(full-empty) / float64(o.charges)
	out.add(engine, fmt.Sprintf("%.0f", each), fmt.Sprintf("%.1f", each*100_000_000/1e9), millis(percentile(page, 0.5)),
		millis(percentile(one, 0.5)))
	return nil
}

// timed returns the sorted times of a reading.
func timed(ctx context.Context, db *store.DB, read func(tx *store.Tx) error) (took []time.Duration, err error) {
	for range asks {
		began := time.Now()
		if err := db.View(ctx, read); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took, nil
}

// chargeBytes is the size of the database on disk: of SQLite's pages, of
// PostgreSQL's table with its indexes.
func chargeBytes(ctx context.Context, db *store.DB) (size int64, err error) {
	text := `SELECT pg_total_relation_size('ledger_charge')`
	if db.Dialect() == store.SQLite {
		text = `SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()`
	}
	err = db.View(ctx, func(tx *store.Tx) error { return tx.QueryRow(text).Scan(&size) })
	return size, err
}
