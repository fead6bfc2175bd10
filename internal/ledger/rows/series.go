package rows

import (
	"tollgate/internal/ledger/books"
	"tollgate/internal/store"
)

// seriesCache holds inserted series. Series are never deleted.
type seriesCache map[int64]struct{}

// maxCached bounds a cache. A larger cache is emptied; existing rows are then inserted again, which
// has no effect.
const maxCached = 100_000

// add adds the series of a committed batch.
func (c *seriesCache) add(ids []int64) {
	if *c == nil || len(*c)+len(ids) > maxCached {
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
func (b *Books) writeSeries(q *store.Batch) {
	names, days := map[int64]books.UsageSeries{}, map[dayKey]*books.DayFigures{}
	for i := range b.Receipts {
		r := &b.Receipts[i]
		if r.End.Outcome == books.Refused {
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
		if _, ok := b.cache.series[id]; !ok {
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
