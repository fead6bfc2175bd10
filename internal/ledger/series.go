package ledger

import (
	"fmt"
	"strconv"

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

type dayKey struct {
	series int64
	books.Day
}

var (
	insertSeries = store.Insert("ledger_series", "id bigint, account text, key text, model text, line text, endpoint text, folded 0",
		"ON CONFLICT (id) DO NOTHING")
	insertDays = store.Insert("ledger_day", `day bigint, series bigint, unit text, requests bigint, billed bigint, failed bigint,
		prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, quantity bigint,
		cost_nano bigint, line_cost_nano bigint, line_costs bigint, known_cost_nano bigint`,
		`ON CONFLICT (day, series, unit) DO UPDATE SET `+store.Add("ledger_day", "requests", "billed", "failed", "prompt_tokens", "cached_tokens",
			"completion_tokens", "quantity", "cost_nano", "line_cost_nano", "line_costs", "known_cost_nano"))
)

// writeSeries adds the batch's ended requests to their days, and inserts series that are not in the
// cache.
func (b *batch) writeSeries(q *store.Batch) {
	names, days := map[int64]books.UsageSeries{}, map[dayKey]*books.DayFigures{}
	for i := range b.Receipts {
		r := &b.Receipts[i]
		if r.End.Outcome == Refused {
			continue
		}
		series := books.UsageSeries{
			Account: r.Hold.Account, Key: r.Hold.Key, Model: books.BoundedText(r.Hold.Model), Line: books.BoundedText(r.End.Line),
			Endpoint: books.BoundedText(r.Hold.Endpoint),
		}
		k := dayKey{books.SeriesID(series), books.Day{Day: r.Hold.Day, Unit: r.End.Quantity.Unit}}
		names[k.series] = series
		if days[k] == nil {
			days[k] = &books.DayFigures{}
		}
		days[k].Add(books.FiguresOf(r.End.Outcome, r.Cost, r.End.ProviderCost(), r.End.Tokens, r.End.Quantity.N))
	}
	var added []any
	for id, s := range names {
		if _, ok := b.series[id]; !ok {
			added = append(added, id, s.Account, s.Key, s.Model, s.Line, s.Endpoint)
			b.newSeries = append(b.newSeries, id)
		}
	}
	rows := insertDays.Make(len(days))
	for k, f := range days {
		rows = append(rows, k.Day.Day, k.series, string(k.Unit))
		for _, n := range f {
			rows = append(rows, n)
		}
	}
	q.Rows(insertSeries, added)
	q.Rows(insertDays, rows)
}

const figureColumns = `id, key, model, line, endpoint, day, unit, outcome, cost_nano, line_cost_nano, prompt_tokens, cached_tokens,
	completion_tokens, quantity`

// receiptFigures are the columns of a receipt that count in its day.
type receiptFigures struct {
	id       string
	series   books.UsageSeries
	day      books.Day
	outcome  Outcome
	cost     money.Amount
	lineCost money.Amount
	tokens   Tokens
	quantity int64
}

// dest returns the destinations of figureColumns.
func (r *receiptFigures) dest() []any {
	return []any{&r.id, &r.series.Key, &r.series.Model, &r.series.Line, &r.series.Endpoint, &r.day.Day, (*string)(&r.day.Unit),
		(*int64)(&r.outcome), (*int64)(&r.cost), (*int64)(&r.lineCost), &r.tokens.Prompt, &r.tokens.Cached, &r.tokens.Completion,
		&r.quantity}
}

func (r *receiptFigures) figures() books.DayFigures {
	return books.FiguresOf(r.outcome, r.cost, r.lineCost, r.tokens, r.quantity)
}

var updateFolded = store.Update("ledger_series", "folded bigint, id bigint")

// foldSeriesTx records the marks of deleted receipts with their series, so that the days can be
// proved without them.
func foldSeriesTx(tx *store.Tx, marks map[int64]uint64) error {
	ids := make([]string, 0, len(marks))
	for id := range marks {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	rows := updateFolded.Make(len(marks))
	if err := tx.Each(func(row store.Row) error {
		var id, folded int64
		err := row.Scan(&id, &folded)
		rows = append(rows, int64(uint64(folded)+marks[id]), id)
		return err
	}, `SELECT id, folded FROM ledger_series WHERE `+tx.InNumbers("id", 1), store.List(ids)); err != nil {
		return fmt.Errorf("read series: %w", err)
	}
	if len(rows) != 2*len(marks) {
		return fmt.Errorf("%d series of deleted receipts are missing", len(marks)-len(rows)/2)
	}
	b := tx.Batch()
	b.Rows(updateFolded, rows)
	return tx.Run(b)
}

func (r *receiptFigures) mark() uint64 { return audit.DayMark(r.day, r.figures()) }
