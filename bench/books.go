package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tollgate/internal/ledger"
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
)

// The shape of the generated books: accounts alternate, so that each account's receipts are
// scattered over the table as in production.
const (
	bookAccounts     = 1000
	bookModels       = 5
	bookDays         = 90
	bookChunk        = 20_000 // receipts per transaction
	bookAccountChunk = 20     // accounts per transaction
	bookCost         = 1000
	bookCredit       = 1_000_000_000_000
)

// writeBooks writes the rows of finished requests. The newest request is from today. Every tenth
// request of an account failed; the others were charged.
func writeBooks(ctx context.Context, db *store.DB, receipts, accounts int64) error {
	today, err := todayOf(ctx, db)
	if err != nil {
		return err
	}
	first := (today - bookDays + 1) * (24 * time.Hour).Milliseconds()
	for from := int64(0); from < receipts; from += bookChunk {
		to := min(receipts, from+bookChunk) - 1
		// Ids contain the time of their requests, like the ids of the service.
		tag := id.First("", time.UnixMilli(first+from*bookDays/receipts*(24*time.Hour).Milliseconds()))[:15]
		err := db.Update(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(writeReceipts, from, to, accounts, today-bookDays+1, receipts, tag)
			return err
		})
		if err != nil {
			return err
		}
	}
	all := min(receipts, accounts)
	for from := int64(0); from < all; from += bookAccountChunk {
		err := db.Update(ctx, func(tx *store.Tx) error {
			for n := from; n < min(all, from+bookAccountChunk); n++ {
				if err := errors.Join(writeAccountTx(tx, n, accounts, receipts), writeDaysTx(tx, n, accounts, receipts, today)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(`INSERT INTO ledger_key_part (key, part) SELECT DISTINCT key, seq / 128 FROM ledger_receipt`)
		return err
	})
}

// todayOf returns the database's UTC day, counted from 1970.
func todayOf(ctx context.Context, db *store.DB) (today int64, err error) {
	err = db.View(ctx, func(tx *store.Tx) error {
		now, err := tx.NowMS()
		today = now / (24 * time.Hour).Milliseconds()
		return err
	})
	return today, err
}

var (
	writeSeries = store.Insert("ledger_series", "id bigint, account text, key text, model text, line text, endpoint text, folded 0", "")
	writeDays   = store.Insert("ledger_day", `day bigint, series bigint, requests bigint, billed bigint, failed bigint,
		prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, quantity bigint,
		cost_nano bigint, line_cost_nano bigint, line_costs bigint, known_cost_nano bigint`, "")
)

// writeDaysTx writes the daily usage of one account.
func writeDaysTx(tx *store.Tx, account, accounts, receipts, today int64) error {
	type day struct{ series, day int64 }
	days := map[day]*books.DayFigures{}
	var names, figures []any
	for i := account; i < receipts; i += accounts {
		n := i / accounts
		series := books.UsageSeries{
			Account: fmt.Sprintf("acct_%s%d", benchPad, 1000+account), Key: fmt.Sprintf("key_%s%d%d", benchPad, n%2, 1000+account),
			Model: fmt.Sprint("model-", n%bookModels), Line: "main", Endpoint: "/v1/chat/completions",
		}
		at := day{books.SeriesID(series), today - bookDays + 1 + i*bookDays/receipts}
		if n < 10 { // later requests repeat the same series
			names = append(names, at.series, series.Account, series.Key, series.Model, series.Line, series.Endpoint)
		}
		if days[at] == nil {
			days[at] = &books.DayFigures{}
		}
		if n%10 == 0 {
			days[at].Add(books.FiguresOf(books.Failed, 0, books.UnknownCost, books.Tokens{}, 0))
		} else {
			days[at].Add(books.FiguresOf(books.Billed, bookCost, books.UnknownCost, books.Tokens{Prompt: 812, Cached: 512, Completion: 345}, 0))
		}
	}
	for at, sums := range days {
		figures = append(figures, at.day, at.series)
		for _, n := range sums {
			figures = append(figures, n)
		}
	}
	b := tx.Batch()
	b.Rows(writeSeries, names)
	b.Rows(writeDays, figures)
	return tx.Run(b)
}

// writeReceipts writes the receipts with the numbers $1 to $2. All $5 receipts belong to $3 accounts
// and begin on day $4. The n-th receipt of an account has key n%2 and model n%5, and failed if n%10
// is 0.
const writeReceipts = `INSERT INTO ledger_receipt (id, account, seq, key, model, endpoint, day, revision, outcome, status, code, line,
	attempts,
		prompt_tokens, cached_tokens, completion_tokens, cost_nano, over_nano, held_nano, balance_nano,
		first_byte_ms, duration_ms, created_ms, ended_ms, stands_for, job)
	WITH RECURSIVE each(i) AS (SELECT CAST($1 AS BIGINT) UNION ALL SELECT i + 1 FROM each WHERE i < CAST($2 AS BIGINT)),
	numbered AS (SELECT i, i / CAST($3 AS BIGINT) AS n, CAST(1000 + i % CAST($3 AS BIGINT) AS TEXT) AS account,
		CAST($4 AS BIGINT) + i * 90 / CAST($5 AS BIGINT) AS day,
		CASE WHEN i / CAST($3 AS BIGINT) % 10 = 0 THEN 0 ELSE 1 END AS billed FROM each)
	SELECT 'req_' || CAST($6 AS TEXT) || CAST(10000000000 + i AS TEXT), 'acct_` + benchPad + `' || account, n + 2,
		'key_` + benchPad + `' || CAST(n % 2 AS TEXT) || account, 'model-' || CAST(n % 5 AS TEXT), '/v1/chat/completions', day, 1,
		2 - billed, CASE billed WHEN 1 THEN 200 ELSE 502 END, CASE billed WHEN 1 THEN '' ELSE 'upstream_unavailable' END, 'main',
		'[{"line":"main","status":200,"first_byte_ms":123,"duration_ms":2345}]',
		812 * billed, 512 * billed, 345 * billed, 1000 * billed, 0, 5000, 1000000000000 - 1000 * (n - n / 10),
		123, 2345, day * 86400000 + 1000, day * 86400000 + 3345, 1, ''
	FROM numbered`

// benchPad makes ids as long as the real ones.
const benchPad = "0123456789abcdefghjkm"

// writeAccountTx writes one account with its keys.
func writeAccountTx(tx *store.Tx, account, accounts, receipts int64) error {
	var spent [2]int64 // by key
	balance, seq := int64(bookCredit), int64(1)
	for i := account; i < receipts; i += accounts {
		n := i / accounts
		seq++
		if n%10 != 0 {
			balance -= bookCost
			spent[n%2] += bookCost
		}
	}
	name := fmt.Sprintf("acct_%s%d", benchPad, 1000+account)
	if err := ledger.OpenAccountTx(tx, name, 0); err != nil {
		return err
	}
	if _, err := ledger.CreditTx(tx, name, bookCredit, "bench"); err != nil {
		return err
	}
	if _, err := tx.Exec(`UPDATE ledger_account SET balance_nano = $1, seq = $2 WHERE id = $3`, balance, seq, name); err != nil {
		return err
	}
	for n, cost := range spent {
		key := fmt.Sprintf("key_%s%d%d", benchPad, n, 1000+account)
		if err := ledger.OpenKeyTx(tx, key, name, ledger.KeyLimits{}); err != nil {
			return err
		}
		if _, err := tx.Exec(`UPDATE ledger_key SET spent_nano = $1 WHERE id = $2`, cost, key); err != nil {
			return err
		}
	}
	return nil
}
