package ledger

import (
	"context"
	"fmt"

	"tollgate/internal/ledger/audit"
	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// seriesCache holds series that are in the database. Series are never deleted.
type seriesCache map[int64]struct{}

// maxCached bounds a cache. A larger cache is emptied; existing rows are then inserted again, which
// has no effect.
const maxCached = 100_000

// add adds the series of a committed batch.
func (c *seriesCache) add(ids []int64) {
	if len(*c)+len(ids) > maxCached {
		*c = seriesCache{}
	}
	for _, id := range ids {
		(*c)[id] = struct{}{}
	}
}

type dayKey struct{ day, series int64 }

// days are figures for ledger_day, with their series.
type days struct {
	names   map[int64]books.UsageSeries
	figures map[dayKey]*books.DayFigures
}

func newDays() days {
	return days{names: map[int64]books.UsageSeries{}, figures: map[dayKey]*books.DayFigures{}}
}

func (d days) add(s books.UsageSeries, day int64, f books.DayFigures) {
	k := dayKey{day, books.SeriesID(s)}
	d.names[k.series] = s
	if sum := d.figures[k]; sum != nil {
		sum.Add(f)
		return
	}
	d.figures[k] = &f
}

var (
	insertSeries = store.Insert("ledger_series", "id bigint, account text, key text, model text, line text, endpoint text, folded 0",
		"ON CONFLICT (id) DO NOTHING")
	insertDays = store.Insert("ledger_day", `day bigint, series bigint, requests bigint, billed bigint, failed bigint,
		prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, images bigint, clips bigint, video_ms bigint,
		cost_nano bigint, line_cost_nano bigint, line_costs bigint, known_cost_nano bigint`,
		`ON CONFLICT (day, series) DO UPDATE SET `+store.Add("ledger_day", "requests", "billed", "failed", "prompt_tokens", "cached_tokens",
			"completion_tokens", "images", "clips", "video_ms", "cost_nano", "line_cost_nano", "line_costs", "known_cost_nano"))
)

// write adds the statements that add the figures to their rows and insert series that are not in
// cache. It returns the inserted series. The caller has locked the accounts of the series.
func (d days) write(q *store.Batch, known seriesCache) []int64 {
	var written []int64
	var names []any
	rows := insertDays.Make(len(d.figures))
	for id, s := range d.names {
		if _, ok := known[id]; !ok {
			names = append(names, id, s.Account, s.Key, s.Model, s.Line, s.Endpoint)
			written = append(written, id)
		}
	}
	for k, f := range d.figures {
		rows = append(rows, k.day, k.series)
		for _, n := range f {
			rows = append(rows, n)
		}
	}
	q.Rows(insertSeries, names)
	q.Rows(insertDays, rows)
	return written
}

func (b *batch) writeSeries(q *store.Batch) {
	d := newDays()
	for i := range b.Receipts {
		r := &b.Receipts[i]
		if r.End.Outcome == Refused {
			continue
		}
		series := books.UsageSeries{
			Account: r.Hold.Account, Key: r.Hold.Key, Model: books.BoundedText(r.Hold.Model), Line: books.BoundedText(r.End.Line),
			Endpoint: books.BoundedText(r.Hold.Endpoint),
		}
		d.add(series, r.Hold.Day, books.FiguresOf(r.End.Outcome, r.Cost, r.End.ProviderCost(), r.End.Tokens))
	}
	b.newSeries = d.write(q, b.series)
}

// daysChunk bounds one transaction of AddToDays.
const daysChunk = 1000

// AddToDays adds receipts to their days that a former version did not add: before the upgrade, or
// on nodes not yet upgraded. It is one step of Run.
func (l *Ledger) AddToDays(ctx context.Context) error {
	for {
		more := false
		err := l.db.Update(ctx, func(tx *store.Tx) (err error) {
			more, err = addToDaysTx(tx)
			return err
		})
		if err != nil {
			return fmt.Errorf("add receipts to their days: %w", err)
		}
		if !more {
			return nil
		}
	}
}

const (
	undatedAccount = `SELECT COALESCE((SELECT account FROM ledger_receipt WHERE dated = 0 ORDER BY account, seq LIMIT 1), '-')`
	undatedPage    = `SELECT ` + figureColumns + ` FROM ledger_receipt WHERE dated = 0 AND account = $1 ORDER BY seq LIMIT $2`
	figureColumns  = `id, key, model, line, endpoint, day, outcome, cost_nano, line_cost_nano, prompt_tokens, cached_tokens,
		completion_tokens, images, clips, video_ms`
)

// receiptFigures are the columns of a receipt that count in its day.
type receiptFigures struct {
	id       string
	series   books.UsageSeries
	day      int64
	outcome  Outcome
	cost     money.Amount
	lineCost money.Amount
	tokens   Tokens
}

// dest returns the destinations of figureColumns.
func (r *receiptFigures) dest() []any {
	return []any{&r.id, &r.series.Key, &r.series.Model, &r.series.Line, &r.series.Endpoint, &r.day, (*int64)(&r.outcome),
		(*int64)(&r.cost), (*int64)(&r.lineCost), &r.tokens.Prompt, &r.tokens.Cached, &r.tokens.Completion, &r.tokens.Images,
		&r.tokens.Clips, &r.tokens.VideoMS}
}

func (r *receiptFigures) figures() books.DayFigures {
	return books.FiguresOf(r.outcome, r.cost, r.lineCost, r.tokens)
}

// addToDaysTx adds some receipts of an account to their days. It returns false if none is left.
func addToDaysTx(tx *store.Tx) (more bool, err error) {
	var account string
	if err := tx.ByIndex(); err != nil {
		return false, err
	}
	if err := tx.QueryRow(undatedAccount).Scan(&account); err != nil || account == "-" {
		return false, err
	}
	if err := tx.Lock("ledger_account", "id", account); err != nil {
		return false, err
	}
	rows, err := tx.Query(undatedPage, account, daysChunk)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	d := newDays()
	var ids []string
	for rows.Next() {
		var r receiptFigures
		if err := rows.Scan(r.dest()...); err != nil {
			return false, err
		}
		ids = append(ids, r.id)
		if r.series.Account = account; r.outcome != Refused {
			d.add(r.series, r.day, r.figures())
		}
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	if err := rows.Close(); err != nil {
		return false, err
	}
	if err := d.writeTx(tx); err != nil {
		return false, err
	}
	_, err = tx.Exec(`UPDATE ledger_receipt SET dated = 1 WHERE `+tx.In("id", 1), store.List(ids))
	return true, err
}

func (d days) writeTx(tx *store.Tx) error {
	q := tx.Batch()
	d.write(q, nil)
	return tx.Run(q)
}

// foldSeriesTx records the marks of deleted receipts with their series, so that the days can be
// proved without them.
func foldSeriesTx(tx *store.Tx, marks map[int64]uint64) error {
	for series, mark := range marks {
		var folded int64
		if err := tx.QueryRow(`SELECT folded FROM ledger_series WHERE id = $1`, series).Scan(&folded); err != nil {
			return fmt.Errorf("read a series: %w", err)
		}
		if _, err := tx.Exec(`UPDATE ledger_series SET folded = $1 WHERE id = $2`, int64(uint64(folded)+mark), series); err != nil {
			return err
		}
	}
	return nil
}

func (r *receiptFigures) mark() uint64 { return audit.DayMark(r.day, r.figures()) }
