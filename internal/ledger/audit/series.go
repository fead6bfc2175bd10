package audit

import (
	"fmt"
	"slices"
	"strings"

	"tollgate/internal/ledger/books"
	"tollgate/internal/money"
)

// The days of a series are proved without their figures in memory. Each figure of a day is
// multiplied by its own factor, and the products are added modulo 2^64. The receipts of the series,
// added in the same way, have the same mark if the figures are their sums; otherwise the marks are
// equal with a probability of 1 in 2^64. The marks of deleted receipts are stored with their
// series.

// DayMark returns the share of a day's figures in the mark of their series.
func DayMark(day books.Day, f books.DayFigures) uint64 { r := factorsOf(day); return r.mark(f) }

// factors are the factors of a day's figures.
type factors [len(books.DayFigures{})]uint64

func factorsOf(day books.Day) (r factors) {
	seed := uint64(0x9e3779b97f4a7c15)
	for i := range len(day.Unit) {
		seed = mix(seed + uint64(day.Unit[i]))
	}
	for i := range r {
		r[i] = mix(mix(uint64(day.Day)*uint64(len(r))+uint64(i)+seed)) | 1
	}
	return r
}

func (r *factors) mark(f books.DayFigures) (sum uint64) {
	for i, factor := range r {
		sum += uint64(f[i]) * factor
	}
	return sum
}

// dayFactors caches the factors of days.
type dayFactors map[books.Day]*factors

func (d dayFactors) of(day books.Day) *factors {
	r := d[day]
	if r == nil {
		f := factorsOf(day)
		r = &f
		d[day] = r
	}
	return r
}

// seriesSums has the marks of a series' stored days and of its receipts.
type seriesSums struct {
	names              books.UsageSeries
	recorded, computed uint64
	capped             bool // a figure of a day has reached money.Max, so the marks prove nothing
}

func (b *Books) readSeries() error {
	b.series, b.bySeries, b.factors = map[int64]*seriesSums{}, map[books.UsageSeries]*seriesSums{}, dayFactors{}
	where, args := b.Where("account")
	err := b.each(func(scan scanner) error {
		var id, folded int64
		var s books.UsageSeries
		if err := scan(&id, &s.Account, &s.Key, &s.Model, &s.Line, &s.Endpoint, &folded); err != nil {
			return err
		}
		if id != books.SeriesID(s) {
			b.Report(Difference{Account: s.Account, Key: s.Key, Model: s.Model, What: "a series' id is not that of its names",
				Recorded: fmt.Sprint(id), Computed: fmt.Sprint(books.SeriesID(s))})
		}
		sums := &seriesSums{names: s, computed: uint64(folded)}
		b.series[id], b.bySeries[s] = sums, sums
		b.account(s.Account, "a series")
		b.key(s.Key, s.Account, "a series")
		b.Count("series", 1)
		return nil
	}, `SELECT id, account, key, model, line, endpoint, folded FROM ledger_series WHERE `+where, args...)
	if err != nil {
		return err
	}
	where, args = b.Where("s.account")
	return b.each(func(scan scanner) error {
		var day books.Day
		var id int64
		var f books.DayFigures
		dest := []any{&day.Day, (*string)(&day.Unit), &id}
		for i := range f {
			dest = append(dest, &f[i])
		}
		if err := scan(dest...); err != nil {
			return err
		}
		s := b.series[id]
		if s == nil {
			return nil // the row of the series cannot be read, which is a difference already
		}
		s.recorded += b.factors.of(day).mark(f)
		s.capped = s.capped || slices.ContainsFunc(f[:], isCapped)
		a, k := b.account(s.names.Account, "a day"), b.key(s.names.Key, s.names.Account, "a day")
		cost := money.Amount(f[books.Cost])
		a.daysCharged, k.sumSpent = money.Plus(a.daysCharged, cost), money.Plus(k.sumSpent, cost)
		if k.limited && cost != 0 {
			sums := &b.limit(books.LimitKey{Subject: s.names.Key, Day: day.Day}, k.account).computed
			sums.Spent = money.Plus(sums.Spent, cost)
		}
		if what := checkDay(day, f); what != "" {
			b.Report(s.at(what, fmt.Sprintf("%s: %v", dayLabel(day), f)))
		}
		b.Count("days of series", 1)
		return nil
	}, `SELECT d.day, d.unit, d.series, d.requests, d.billed, d.failed, d.prompt_tokens, d.cached_tokens, d.completion_tokens,
		d.quantity, d.cost_nano, d.line_cost_nano, d.line_costs, d.known_cost_nano
		FROM ledger_series s JOIN ledger_day d ON d.series = s.id WHERE `+where, args...)
}

func isCapped(n int64) bool { return n >= int64(money.Max) }

// at returns a difference about the series.
func (s *seriesSums) at(what, recorded string) Difference {
	return Difference{Account: s.names.Account, Key: s.names.Key, Model: s.names.Model, What: what, Recorded: recorded}
}

// dayLabel returns a day and its unit for a message.
func dayLabel(day books.Day) string {
	return strings.TrimSpace(fmt.Sprintf("day %d %s", day.Day, day.Unit))
}

// checkDay returns the error in a day's figures, or "".
func checkDay(day books.Day, f books.DayFigures) string {
	for _, n := range f {
		if n < 0 {
			return "a figure of a day is negative"
		}
	}
	switch {
	case f[books.Requests] == 0:
		return "a day has no requests"
	case f[books.BilledRequests]+f[books.FailedRequests] > f[books.Requests], f[books.LineCosts] > f[books.Requests]:
		return "a day has fewer requests than outcomes"
	case day.Unit == "" && f[books.Quantity] != 0:
		return "a day has a quantity without a unit"
	case f[books.KnownCost] > f[books.Cost]:
		return "a day's charges of known cost are more than all charges"
	}
	return ""
}

// addToSeries adds a receipt to the computed mark of its series.
func (b *Books) addToSeries(names books.UsageSeries, r *receipt) {
	if r.outcome == books.Refused {
		return
	}
	s := b.bySeries[names]
	if s == nil {
		s = &seriesSums{names: names}
		b.bySeries[names] = s
	}
	day := books.Day{Day: r.day, Unit: r.quantity.Unit}
	s.computed += b.factors.of(day).mark(books.FiguresOf(r.outcome, r.cost, r.lineCost, r.tokens, r.quantity.N))
}

// maxComparedSeries is the maximum number of series whose days are compared one by one.
const maxComparedSeries = 10

// compareSeries reports series whose days are not the sums of their receipts.
func (b *Books) compareSeries() error {
	compared := 0
	for _, s := range b.bySeries {
		if s.capped {
			b.unproved(s.at("a figure of a day has reached its highest value, so the days are compared only with the remaining receipts",
				s.names.Line+", "+s.names.Endpoint))
		}
		if s.recorded == s.computed {
			continue
		}
		if compared++; compared > maxComparedSeries {
			b.Report(s.at("days are not the sums of their receipts", ""))
			continue
		}
		if err := b.findDays(s); err != nil {
			return err
		}
	}
	return nil
}

// findDays reports the differing days of a series. It cannot check a day with deleted receipts.
func (b *Books) findDays(s *seriesSums) error {
	type sums struct{ recorded, computed books.DayFigures }
	days := map[books.Day]*sums{}
	at := func(day books.Day) *sums {
		if days[day] == nil {
			days[day] = &sums{}
		}
		return days[day]
	}
	const ofSeries = `account = $1 AND key = $2 AND model = $3 AND line = $4 AND endpoint = $5 AND outcome <> 4`
	const columns = `prompt_tokens, cached_tokens, completion_tokens, quantity, cost_nano, line_cost_nano`
	err := b.each(func(scan scanner) error {
		var day books.Day
		var f books.DayFigures
		dest := []any{&day.Day, (*string)(&day.Unit)}
		for i := range f {
			dest = append(dest, &f[i])
		}
		err := scan(dest...)
		at(day).recorded = f
		return err
	}, `SELECT day, unit, requests, billed, failed, `+columns+`, line_costs, known_cost_nano FROM ledger_day WHERE series = $1`,
		books.SeriesID(s.names))
	if err != nil {
		return err
	}
	err = b.each(func(scan scanner) error {
		var day books.Day
		var outcome, quantity int64
		var t books.Tokens
		var cost, lineCost money.Amount
		err := scan(&day.Day, (*string)(&day.Unit), &outcome, &t.Prompt, &t.Cached, &t.Completion, &quantity, &cost, &lineCost)
		at(day).computed.Add(books.FiguresOf(books.Outcome(outcome), cost, lineCost, t, quantity))
		return err
	}, `SELECT day, unit, outcome, `+columns+` FROM ledger_receipt WHERE `+ofSeries+`
		UNION ALL SELECT day, unit, outcome, `+columns+` FROM `+Unfolded+` AND `+ofSeries,
		s.names.Account, s.names.Key, s.names.Model, s.names.Line, s.names.Endpoint)
	if err != nil {
		return err
	}
	for day, d := range days {
		if d.recorded != d.computed && d.computed != (books.DayFigures{}) && !s.deletedFrom(d.recorded, d.computed) {
			b.Report(Difference{Account: s.names.Account, Key: s.names.Key, Model: s.names.Model, What: "a day is not the sum of its receipts",
				Recorded: fmt.Sprintf("%s: %v", dayLabel(day), d.recorded), Computed: fmt.Sprint(d.computed)})
		}
	}
	if !s.capped {
		b.Report(s.at("days are not the sums of their receipts, including deleted ones", fmt.Sprintf("%s, %s", s.names.Line,
			s.names.Endpoint)))
	}
	return nil
}

// deletedFrom reports whether a day of a capped series may be right although its figures exceed those
// of the remaining receipts. The marks of a capped series prove nothing.
func (s *seriesSums) deletedFrom(recorded, left books.DayFigures) bool {
	if !s.capped || recorded[books.Requests] <= left[books.Requests] {
		return false
	}
	for i := range recorded {
		if recorded[i] < left[i] {
			return false
		}
	}
	return true
}
