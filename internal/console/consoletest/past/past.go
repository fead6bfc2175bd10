// Command past owns the history of a gateway's demo account: two months of keys, days of usage,
// successful and failed requests, deliveries and credits. Tests of the console's appearance write
// the history first, because a new service has only empty lists.
//
// Invariants: the history is the same in every run, except for its times and the secrets of keys.
// The history does not balance, so no audit may run on it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/requestlog"
	"tollgate/internal/money"
	"tollgate/internal/store"
	"tollgate/internal/store/id"
	"tollgate/internal/webhook"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "past:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: past DATABASE")

// run writes the history into the database named by the only argument.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errUsage
	}
	db, err := store.Open(ctx, args[0], store.Options{})
	if err != nil {
		return err
	}
	err = db.Update(ctx, func(tx *store.Tx) error {
		list, _, err := account.ListTx(tx, "", 1)
		if err != nil {
			return err
		}
		w := writer{tx: tx, account: list[0].ID, balance: list[0].Money.Balance, seq: firstSeq}
		if w.nowMS, err = tx.NowMS(); err != nil {
			return err
		}
		return w.write()
	})
	return errors.Join(err, db.Close())
}

const (
	day   = 24 * time.Hour
	days  = 60
	calls = 130 // number of requests in the log
	// firstSeq is the first sequence number of the history in the account's books. New receipts
	// start after lastSeq.
	firstSeq, lastSeq = 100, 5000
)

// model is a model used by the account.
type model struct {
	name, endpoint string
	cost           money.Amount // of a request
	maxDaily       int64        // requests on the busiest day
}

// models are the models used by the account. One has a long name, and one is no longer in the catalog.
var models = []model{
	{"sandbox-chat", "/v1/chat/completions", 2_730_000, 400},
	{"sandbox-reasoner", "/v1/responses", 41_000_000, 90},
	{"sandbox-messages", "/native/v1/messages", 63_000_000, 40},
	{"sandbox-image", "/v1/images/generations", 30_000_000, 60},
	{"sandbox-video", "/v1/videos/generations", 250_000_000, 12},
	{"sandbox-vision", "/v1/chat/completions", 9_000_000, 30},
	{"a-vendor/a-model-with-a-very-long-name-2026-11-preview-experimental", "/v1/chat/completions", 7_000_000, 11},
	{"sandbox-old", "/v1/chat/completions", 100, 3},
}

// ending is the outcome of a request.
type ending struct {
	status   int
	outcome  books.Outcome
	code     string
	attempts string
}

// endings are the outcomes of successive requests.
var endings = []ending{
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":1400}]`},
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":640}]`},
	{200, books.Billed, "", `[{"line":"x","status":502,"code":"upstream_timeout","cause":"x","duration_ms":60000},
		{"line":"y","skipped":"cooling"},{"line":"z","status":200,"duration_ms":2100}]`},
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":900}]`},
	{429, books.Refused, "rate_limit_exceeded", `[]`},
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":14000}]`},
	{502, books.Failed, "upstream_unavailable", `[{"line":"x","status":500,"code":"upstream_unavailable","duration_ms":310},
		{"line":"y","status":503,"code":"upstream_busy","duration_ms":120}]`},
	{402, books.Refused, "insufficient_quota", `[]`},
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":2200}]`},
	{400, books.Refused, "invalid_messages", `[]`},
	{499, books.Closed, "client_closed", `[{"line":"x","status":200,"duration_ms":3000}]`},
	{200, books.Billed, "", `[{"line":"x","status":200,"duration_ms":410}]`},
	{503, books.Refused, "model_maintenance", `[]`},
}

// writer writes the history of an account.
type writer struct {
	tx      *store.Tx
	account string
	nowMS   int64
	balance money.Amount
	spent   money.Amount // on all days, including the requests of the log
	seq     int64
	keys    []string
}

func (w *writer) write() error {
	for _, step := range []func() error{w.backdate, w.makeKeys, w.writeUsage, w.writeCredits, w.writeRequests, w.writeDeliveries} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// ago returns a past time in Unix milliseconds.
func (w *writer) ago(d time.Duration) int64 { return w.nowMS - d.Milliseconds() }

// idAt returns an identifier for a time. n distinguishes identifiers of the same kind and time.
func idAt(prefix string, ms int64, n int) string {
	base := id.First(prefix, time.UnixMilli(ms))
	tail := fmt.Sprintf("%05d", n)
	return base[:len(base)-len(tail)] + tail
}

func (w *writer) exec(text string, args ...any) error {
	_, err := w.tx.Exec(text, args...)
	return err
}

// backdate moves the account's creation to the start of the history.
func (w *writer) backdate() error {
	if err := w.exec(`UPDATE account SET created_ms = $1 WHERE id = $2`, w.ago(days*day), w.account); err != nil {
		return err
	}
	return w.exec(`UPDATE ledger_account SET seq = $1 WHERE id = $2`, lastSeq, w.account)
}

// makeKeys creates two keys with limits and a disabled key.
func (w *writer) makeKeys() error {
	rpm, budget, total := int64(60), 5*money.USD, 250*money.USD
	settings := []account.KeySettings{
		{Name: "backend", RPM: &rpm, DailyBudget: &budget},
		{Name: "the nightly run of the reports, by somebody who likes long names", TotalLimit: &total, AllowedModels: []string{"sandbox-chat"}},
		{Name: "old laptop", Disabled: true},
	}
	for range settings {
		k, _, err := account.CreateKeyTx(w.tx, w.account, account.KeySettings{})
		if err != nil {
			return err
		}
		w.keys = append(w.keys, k.ID)
	}
	slices.Sort(w.keys) // the order of the list
	for i, key := range w.keys {
		if _, err := account.ChangeKeyTx(w.tx, key, func(s *account.KeySettings) error { *s = settings[i]; return nil }); err != nil {
			return err
		}
		spent := money.Amount(i+1) * 3_110_000_000
		if err := w.exec(`UPDATE ledger_key SET spent_nano = $1, last_used_ms = $2 WHERE id = $3`,
			int64(spent), w.ago(time.Duration(i)*31*time.Hour+2*time.Minute), key); err != nil {
			return err
		}
	}
	return nil
}

// writeUsage writes daily usage, with less usage at weekends and more in later months.
func (w *writer) writeUsage() error {
	today := books.DayOf(w.nowMS)
	for n, m := range models {
		s := books.UsageSeries{Account: w.account, Key: w.keys[n%len(w.keys)], Model: m.name, Line: "sandbox", Endpoint: m.endpoint}
		unit := map[string]measure.Unit{"sandbox-image": measure.Image, "sandbox-video": measure.VideoMS}[m.name]
		if err := w.exec(`INSERT INTO ledger_series (id, account, key, model, line, endpoint, folded) VALUES ($1, $2, $3, $4, $5, $6, 0)`,
			books.SeriesID(s), s.Account, s.Key, s.Model, s.Line, s.Endpoint); err != nil {
			return err
		}
		var cost int64
		for back := int64(days); back >= 0; back-- {
			requests := m.maxDaily * (days + 30 - back) / (days + 30) * (4 + (back*int64(n+3))%5) / 8
			if back%7 > 4 {
				requests /= 4
			}
			if requests == 0 {
				continue
			}
			failed := requests * (back % 4) / 50
			charged := int64(m.cost) * (requests - failed)
			var quantity int64
			if unit == measure.Image {
				quantity = requests - failed
			}
			if err := w.exec(`INSERT INTO ledger_day (day, series, requests, billed, failed, prompt_tokens, cached_tokens, completion_tokens,
				quantity, cost_nano, line_cost_nano, line_costs, unit) VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, $9, 0, 0, $10)`,
				today-back, books.SeriesID(s), requests, requests-failed, failed, requests*812, requests*207, quantity,
				charged, string(unit)); err != nil {
				return err
			}
			cost += charged
		}
		w.spent += money.Amount(cost)
	}
	return nil
}

// writeRequests writes the request log, with a request every 31 minutes.
func (w *writer) writeRequests() error {
	var receipts []books.ReceiptRow
	for n := range calls {
		m, end := modelAndEnding(n)
		created := w.ago(time.Duration(calls-n) * 31 * time.Minute)
		duration := time.Duration(400+n*37%3000) * time.Millisecond
		prompt, answer := int64(900+n*113%4000), int64(200+n*71%900)
		cost := costOf(n)
		if cost == 0 {
			prompt, answer = 0, 0
		}
		if end.outcome == books.Refused {
			duration = 3 * time.Millisecond
		}
		w.balance -= cost
		w.seq++
		tokens := books.Tokens{Prompt: prompt, Cached: prompt / 5, Completion: answer}
		receipts = append(receipts, books.ReceiptRow{
			Hold: books.HoldRow{ID: idAt("req_", created, n), Account: w.account, Key: w.keys[n%len(w.keys)], Model: m.name,
				Endpoint: m.endpoint, Day: books.DayOf(created), Revision: revisionOf(end.outcome), Amount: 4 * m.cost, CreatedMS: created},
			End: books.End{Outcome: end.outcome, Status: end.status, Code: end.code, Line: "sandbox", Tokens: tokens,
				Source: books.SourceProvider, FirstByte: duration / 3, Duration: duration},
			Attempts: end.attempts, Seq: w.seq, Cost: cost, Balance: w.balance, StandsFor: int64(1 + n/120*29),
			EndedMS: created + duration.Milliseconds(),
		})
	}
	batch := w.tx.Batch()
	requestlog.Write(batch, receipts)
	if err := w.tx.Run(batch); err != nil {
		return err
	}
	return w.exec(`UPDATE ledger_account SET balance_nano = $1 WHERE id = $2`, int64(w.balance), w.account)
}

// roundUp rounds spending up to whole invoices of 50 USD.
func roundUp(spent money.Amount) money.Amount {
	const invoice = 50 * money.USD
	return (spent + invoice - 1) / invoice * invoice
}

// modelAndEnding returns the model and the outcome of request n in the log.
func modelAndEnding(n int) (model, ending) { return models[n%3], endings[(n*7)%len(endings)] }

// costOf returns the charge for request n in the log.
func costOf(n int) money.Amount {
	m, end := modelAndEnding(n)
	if end.outcome != books.Billed {
		return 0
	}
	return m.cost
}

// revisionOf returns the catalog revision of a request's price, or 0 if the request has no price.
func revisionOf(outcome books.Outcome) int64 {
	if outcome == books.Refused {
		return 0
	}
	return 1
}

// writeCredits writes a credit for the whole history and takes part of the credit back. It sets
// w.balance to the balance before the first request in the log.
func (w *writer) writeCredits() error {
	const excess = 5 * money.USD
	w.balance += roundUp(w.spent) - w.spent
	for n := range calls {
		w.balance += costOf(n)
	}
	for i, m := range []struct {
		kind   string
		amount money.Amount
		note   string
		age    time.Duration
	}{
		{"credit", roundUp(w.spent) + excess, "invoice 1043, paid by transfer", 59 * day},
		{"take_back", -excess, "invoice 1043 was 5 USD less", 58 * day},
	} {
		if err := w.exec(`INSERT INTO ledger_entry (id, account, seq, kind, amount_nano, balance_nano, note, created_ms)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, idAt("mov_", w.ago(m.age), i), w.account, 10+i, m.kind, int64(m.amount),
			int64(w.balance+m.amount), m.note, w.ago(m.age)); err != nil {
			return err
		}
	}
	return nil
}

// writeDeliveries writes deliveries in each state.
func (w *writer) writeDeliveries() error {
	for n, d := range []struct {
		kind, data string
		state      int // 0 pending, 1 delivered, 2 failed
		statuses   []int
	}{
		{webhook.VideoCompleted, `{"id":"job_1","object":"video.generation.job","status":"succeeded"}`, 1, []int{200}},
		{webhook.ImageFailed, `{"id":"job_2","object":"image.generation.job","status":"failed"}`, 2, []int{500, 500, 0, 500, 502, 500}},
		{webhook.ImageCompleted, `{"id":"job_3","object":"image.generation.job","status":"succeeded"}`, 1, []int{503, 204}},
		{webhook.BalanceLow, `{"balance_credits":480,"threshold_credits":500}`, 0, []int{500}},
	} {
		created := w.ago(time.Duration(4-n) * 26 * time.Hour)
		delivery := idAt("dlv_", created, n)
		body := fmt.Sprintf(`{"id":%q,"object":"event","type":%q,"created_at":%d,"data":%s}`, idAt("evt_", created, n), d.kind,
			created/1000, d.data)
		if err := w.exec(`INSERT INTO webhook_delivery (id, account, event, type, url, receiver, body, state, created_ms)
			VALUES ($1, $2, $3, $4, 'https://shop.example/hooks/tollgate', 'shop', $5, $6,
				$7)`, delivery, w.account, idAt("evt_", created, n), d.kind,
			body, d.state, created); err != nil {
			return err
		}
		for i, status := range d.statuses {
			cause := ""
			switch {
			case status == 0:
				cause = "no answer within 10 seconds"
			case status >= 300:
				cause = fmt.Sprintf("the receiver answered %d", status)
			}
			if err := w.exec(`INSERT INTO webhook_attempt (delivery, id, at_ms, status, took_ms, error) VALUES ($1, $2, $3, $4, $5, $6)`,
				delivery, fmt.Sprintf("lse_%d", i), created+int64(i)*int64(time.Hour/time.Millisecond), status, 84+i*31,
				cause); err != nil {
				return err
			}
		}
		if d.state == 0 {
			if err := w.exec(`INSERT INTO webhook_queue (delivery, account, receiver, due_ms, tries, fresh, lease, epoch, until_ms)
				VALUES ($1, $2, 'shop', $3, 1, 0, '', '', 0)`, delivery, w.account, w.nowMS+int64(time.Hour/time.Millisecond)); err != nil {
				return err
			}
		}
	}
	return nil
}
