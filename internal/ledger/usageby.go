package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/money"
	"tollgate/internal/store"
)

// UsagePart is something that usage can be grouped by.
type UsagePart string

// The parts, as the APIs call them.
const (
	ByAccount  UsagePart = "account"
	ByKey      UsagePart = "key"
	ByModel    UsagePart = "model"
	ByLine     UsagePart = "line"
	ByEndpoint UsagePart = "endpoint"
	ByDay      UsagePart = "day"
)

// UsageParts returns all parts, in the order in which answers show them.
func UsageParts() []UsagePart {
	return []UsagePart{ByDay, ByAccount, ByKey, ByModel, ByLine, ByEndpoint}
}

// UsageQuery selects ended requests by the UTC day of their admission, and says
// by what they are summed. Empty fields select all.
type UsageQuery struct {
	Account, Key, Model, Line, Endpoint string
	Since, Until                        int64 // days since 1970: from Since on, up to but without Until; Until 0: no end
	By                                  []UsagePart
	Limit                               int // of rows
}

// UsageRow is what some requests came to. Of what they are not grouped by the
// fields are empty.
type UsageRow struct {
	Day                                 string // YYYY-MM-DD
	Account, Key, Model, Line, Endpoint string
	UsageFigures
}

// UsageFigures are sums of ended requests. A request whose client left before the
// first byte counts in Requests alone.
type UsageFigures struct {
	Requests, Billed, Failed   int64
	Prompt, Cached, Completion int64 // tokens; Cached is part of Prompt
	Images, Clips, VideoMS     int64
	Charged                    money.Amount
	LineCost                   money.Amount // what providers take, where it is known
	LineCosts                  int64        // the requests of which it is known
}

// ErrTooManyRows means that usage has more rows than were asked for.
var ErrTooManyRows = errors.New("usage has more rows than the limit")

// UsageByTx returns the usage that q selects: a row for each combination of its
// parts, in their order, by day first. Without parts it is one row. It reads a row
// for each day and series, however many requests they had. ErrTooManyRows.
func UsageByTx(tx *store.Tx, q UsageQuery) ([]UsageRow, error) {
	text, args, parts := q.statement()
	rows, err := tx.Query(text, args...)
	if err != nil {
		return nil, fmt.Errorf("read the usage: %w", err)
	}
	defer rows.Close()
	var out []UsageRow
	for rows.Next() {
		var r UsageRow
		var day int64
		var dest []any
		for _, part := range parts {
			dest = append(dest, r.dest(part, &day))
		}
		f := &r.UsageFigures
		dest = append(dest, &f.Requests, &f.Billed, &f.Failed, &f.Prompt, &f.Cached, &f.Completion, &f.Images, &f.Clips, &f.VideoMS,
			&f.Charged, &f.LineCost, &f.LineCosts)
		if err := rows.Scan(dest...); err != nil {
			return nil, fmt.Errorf("read the usage: %w", err)
		}
		if slices.Contains(parts, ByDay) {
			r.Day = time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly)
		}
		out = append(out, r)
	}
	if len(out) > q.Limit {
		return nil, ErrTooManyRows
	}
	return out, rows.Err()
}

// dest is where the part's column goes.
func (r *UsageRow) dest(part UsagePart, day *int64) any {
	switch part {
	case ByDay:
		return day
	case ByAccount:
		return &r.Account
	case ByKey:
		return &r.Key
	case ByModel:
		return &r.Model
	case ByLine:
		return &r.Line
	}
	return &r.Endpoint
}

// usageSums are the figures, summed.
var usageSums = sumsOf("requests", "billed", "failed", "prompt_tokens", "cached_tokens", "completion_tokens", "images", "clips", "video_ms",
	"cost_nano", "line_cost_nano", "line_costs")

func sumsOf(columns ...string) string {
	var sums []string
	for _, column := range columns {
		sums = append(sums, "CAST(COALESCE(SUM(d."+column+"), 0) AS BIGINT)")
	}
	return strings.Join(sums, ", ")
}

// statement reads by the days of the series where an account or a key is chosen,
// and by the span of days otherwise.
func (q UsageQuery) statement() (text string, args []any, parts []UsagePart) {
	var where, columns []string
	add := func(condition string, value any) {
		args = append(args, value)
		where = append(where, condition+" $"+strconv.Itoa(len(args)))
	}
	for _, f := range []struct{ column, value string }{
		{"account", q.Account}, {"key", q.Key}, {"model", q.Model}, {"line", q.Line}, {"endpoint", q.Endpoint},
	} {
		if f.value != "" {
			add("s."+f.column+" =", f.value)
		}
	}
	add("d.day >=", q.Since)
	if q.Until > 0 {
		add("d.day <", q.Until)
	}
	for _, part := range UsageParts() {
		if !slices.Contains(q.By, part) {
			continue
		}
		parts = append(parts, part)
		if part == ByDay {
			columns = append(columns, "d.day")
		} else {
			columns = append(columns, "s."+string(part))
		}
	}
	text = `SELECT ` + strings.Join(append(columns, usageSums), ", ") + ` FROM ledger_series s JOIN ledger_day d ON d.series = s.id
		WHERE ` + strings.Join(where, " AND ")
	if len(columns) > 0 {
		text += ` GROUP BY ` + strings.Join(columns, ", ") + ` ORDER BY ` + strings.Join(columns, ", ")
	}
	args = append(args, q.Limit+1)
	return text + ` LIMIT $` + strconv.Itoa(len(args)), args, parts
}
