package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"tollgate/internal/id"
	"tollgate/internal/ledger"
	"tollgate/internal/ledger/audit"
	"tollgate/internal/store"
)

// The shape of the books that are audited: accounts take turns, so that the
// receipts of each lie scattered over the table as they do in life.
const (
	auditAccounts = 1000
	auditModels   = 5
	auditDays     = 90
	auditChunk    = 100_000 // receipts a transaction
	auditCost     = 1000
	auditCredit   = 1_000_000_000_000
)

// benchAudit prints how long the audit of many receipts takes.
func benchAudit(o options) error {
	fmt.Printf("### Audit: %d receipts of %d accounts over %d days\n\n", o.receipts, auditAccounts, auditDays)
	out := newTable("database", "seconds", "CPU s of this process", "peak MiB of Go's heap", "differences")
	engines := []string{"SQLite"}
	if o.postgres != "" {
		engines = append(engines, "PostgreSQL")
	}
	for _, engine := range engines {
		if err := onFresh(o, engine, func(ctx context.Context, db *store.DB) error { return benchAuditOn(ctx, o, engine, db, out) }); err != nil {
			return fmt.Errorf("%s: %w", engine, err)
		}
	}
	out.print()
	return nil
}

func benchAuditOn(ctx context.Context, o options, engine string, db *store.DB, out *table) error {
	began := time.Now()
	if err := writeBooks(ctx, db, int64(o.receipts), auditAccounts); err != nil {
		return fmt.Errorf("write the books: %w", err)
	}
	fmt.Printf("%s: the books were written in %.0f s\n", engine, time.Since(began).Seconds())
	for range o.rounds {
		cpu, err := ownCPU()
		if err != nil {
			return err
		}
		began := time.Now()
		peak, stop := watchHeap()
		report, err := audit.Run(ctx, db)
		stop()
		if err != nil {
			return err
		}
		took := time.Since(began)
		cpuAfter, err := ownCPU()
		if err != nil {
			return err
		}
		out.add(engine, fmt.Sprintf("%.1f", took.Seconds()), fmt.Sprintf("%.1f", (cpuAfter-cpu).Seconds()),
			fmt.Sprint(*peak>>20), fmt.Sprint(len(report.Differences)))
		if !report.OK {
			return fmt.Errorf("the books do not agree: %+v", report.Differences[:min(10, len(report.Differences))])
		}
	}
	return nil
}

// watchHeap looks at Go's heap ten times a second until it is stopped.
func watchHeap() (peak *uint64, stop func()) {
	peak = new(uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			*peak = max(*peak, m.HeapAlloc)
		}
	}()
	return peak, func() { close(done); <-ended }
}

// writeBooks writes what so many ended requests of so many accounts leave, the last
// of them today: of each account every tenth failed, and the rest was charged.
func writeBooks(ctx context.Context, db *store.DB, receipts, accounts int64) error {
	var today int64
	err := db.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		today = now / (24 * time.Hour).Milliseconds()
		return err
	})
	if err != nil {
		return err
	}
	tag := id.New("")[:15]
	for from := int64(0); from < receipts; from += auditChunk {
		to := min(receipts, from+auditChunk) - 1
		err := db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(writeReceipts, from, to, accounts, today-auditDays+1, receipts, tag)
			return err
		})
		if err != nil {
			return err
		}
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		for n := range min(receipts, accounts) {
			if err := writeAccountTx(tx, n, accounts, receipts, today); err != nil {
				return err
			}
		}
		return nil
	})
}

// writeReceipts writes the receipts from number $1 to number $2 of all $5, which
// begin on day $4, of $3 accounts. The account's own n-th receipt has the key n%2 and the model
// n%5, and failed where n%10 is 0.
const writeReceipts = `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line,
	attempts,
		prompt_tokens, cached_tokens, completion_tokens, images, cost_nano, over_nano, held_nano, balance_nano,
		first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)
	WITH RECURSIVE each(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM each WHERE i < CAST($2 AS BIGINT)),
	numbered AS (SELECT i, i / CAST($3 AS BIGINT) AS n, CAST(1000 + i % CAST($3 AS BIGINT) AS TEXT) AS account,
		CAST($4 AS BIGINT) + i * 90 / CAST($5 AS BIGINT) AS day,
		CASE WHEN i / CAST($3 AS BIGINT) % 10 = 0 THEN 0 ELSE 1 END AS billed FROM each)
	SELECT 'req_' || CAST($6 AS TEXT) || CAST(10000000000 + i AS TEXT), 'acct_` + benchPad + `' || account, n + 2,
		'key_` + benchPad + `' || CAST(n % 2 AS TEXT) || account, 'model-' || CAST(n % 5 AS TEXT), '/v1/chat/completions', day, 1,
		2 - billed, CASE billed WHEN 1 THEN 200 ELSE 502 END, CASE billed WHEN 1 THEN '' ELSE 'upstream_unavailable' END, 'main',
		'[{"line":"main","status":200,"first_byte_ms":123,"duration_ms":2345}]',
		812 * billed, 512 * billed, 345 * billed, 0, 1000 * billed, 0, 5000, 1000000000000 - 1000 * (n - n / 10),
		123, 2345, day * 86400000 + 1000, day * 86400000 + 3345, 1, ''
	FROM numbered`

// benchPad makes names as long as those of the service.
const benchPad = "0123456789abcdefghjkm"

// writeAccountTx writes one of so many accounts with its figures.
func writeAccountTx(tx *store.Tx, account, accounts, receipts, today int64) error {
	type sums struct{ cost, requests, billed, failed, dayCost, dayRequests, dayBilled, dayFailed int64 }
	var keys [2]sums
	var models [auditModels]sums
	balance, seq := int64(auditCredit), int64(1)
	for i := account; i < receipts; i += accounts {
		n, today := i/accounts, i*auditDays/receipts == auditDays-1
		seq++
		for _, s := range []*sums{&keys[n%2], &models[n%auditModels]} {
			failed := n%10 == 0
			s.requests++
			if today {
				s.dayRequests++
			}
			switch {
			case failed && today:
				s.dayFailed++
				fallthrough
			case failed:
				s.failed++
				continue
			case today:
				s.dayCost += auditCost
				s.dayBilled++
			}
			s.cost += auditCost
			s.billed++
		}
		if n%10 != 0 {
			balance -= auditCost
		}
	}
	name := fmt.Sprintf("acct_%s%d", benchPad, 1000+account)
	if err := ledger.OpenAccountTx(tx, name, 0); err != nil {
		return err
	}
	if _, err := ledger.CreditTx(tx, name, auditCredit, "bench"); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET balance_nano = $1, seq = $2 WHERE id = $3`, balance, seq, name); err != nil {
		return err
	}
	for n, s := range keys {
		key := fmt.Sprintf("key_%s%d%d", benchPad, n, 1000+account)
		if err := ledger.OpenKeyTx(tx, key, name, ledger.KeyLimits{}); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_key SET spent_nano = $1, day = $2, day_spent_nano = $3 WHERE id = $4`, s.cost, today, s.dayCost,
			key); err != nil {
			return err
		}
	}
	for n, s := range models {
		_, err := tx.Exec(`INSERT INTO ledger_usage (account, model, cost_nano, requests, billed, failed, prompt_tokens, completion_tokens,
			images,
				day, day_cost_nano, day_requests, day_billed, day_failed)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11, $12, $13)`,
			name, fmt.Sprint("model-", n), s.cost, s.requests, s.billed, s.failed, 812*s.billed, 345*s.billed,
			today, s.dayCost, s.dayRequests, s.dayBilled, s.dayFailed)
		if err != nil {
			return err
		}
	}
	return nil
}
