package ledger

import (
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

var (
	insertSeries = store.Insert("ledger_series", "id bigint, account text, key text, model text, line text, endpoint text, folded 0",
		"ON CONFLICT (id) DO NOTHING")
	insertDays = store.Insert("ledger_day", `day bigint, series bigint, requests bigint, billed bigint, failed bigint,
		prompt_tokens bigint, cached_tokens bigint, completion_tokens bigint, images bigint, clips bigint, video_ms bigint,
		cost_nano bigint, line_cost_nano bigint, line_costs bigint, known_cost_nano bigint`,
		`ON CONFLICT (day, series) DO UPDATE SET `+store.Add("ledger_day", "requests", "billed", "failed", "prompt_tokens", "cached_tokens",
			"completion_tokens", "images", "clips", "video_ms", "cost_nano", "line_cost_nano", "line_costs", "known_cost_nano"))
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
		k := dayKey{r.Hold.Day, books.SeriesID(series)}
		names[k.series] = series
		if days[k] == nil {
			days[k] = &books.DayFigures{}
		}
		days[k].Add(books.FiguresOf(r.End.Outcome, r.Cost, r.End.ProviderCost(), r.End.Tokens))
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
		rows = append(rows, k.day, k.series)
		for _, n := range f {
			rows = append(rows, n)
		}
	}
	q.Rows(insertSeries, added)
	q.Rows(insertDays, rows)
}

const figureColumns = `id, key, model, line, endpoint, day, outcome, cost_nano, line_cost_nano, prompt_tokens, cached_tokens,
	completion_tokens, images, clips, video_ms`

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
