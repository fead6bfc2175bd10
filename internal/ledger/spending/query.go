// Package spending owns the sums of requests by account, key, model, line, endpoint and day for the
// APIs and the console, as JSON and CSV.
//
// Invariants: it reads only days of series, never requests, so that its cost does not grow with
// them. It writes nothing.
package spending

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

// By is a grouping of usage.
type By string

// The parts, as the APIs call them.
const (
	ByAccount  By = "account"
	ByKey      By = "key"
	ByModel    By = "model"
	ByLine     By = "line"
	ByEndpoint By = "endpoint"
	ByDay      By = "day"
)

// All returns all parts, in the order of the columns.
func Groupings() []By {
	return []By{ByDay, ByAccount, ByKey, ByModel, ByLine, ByEndpoint}
}

// Query selects ended requests by the UTC day of their admission, and names the groupings. Empty
// fields select all.
type Query struct {
	Account, Key, Model, Line, Endpoint string
	ExceptLines                         []string // lines to leave out, unless Line is set
	OnlyLines                           []string // only these lines; nil means all
	Since, Until                        int64    // days since 1970: from Since on, up to but without Until; Until 0: no end
	By                                  []By
	Limit                               int // of rows
}

// Spent is the sum of some requests. Fields outside the grouping are empty.
type UsageRow struct {
	Day                                 string // YYYY-MM-DD
	Account, Key, Model, Line, Endpoint string
	Sums
}

// Sums are sums of ended requests. A request whose client left before the first byte counts only in
// Requests.
type Sums struct {
	Requests, Billed, Failed   int64
	Prompt, Cached, Completion int64 // tokens; Cached is part of Prompt
	Images, Clips, VideoMS     int64
	Charged                    money.Amount
	LineCost                   money.Amount // the providers' known cost
	LineCosts                  int64        // requests with a known cost
	KnownCost                  money.Amount // the charges of those requests
}

// ErrTooManyRows means that usage has more rows than the query's limit.
var ErrTooManyRows = errors.New("usage has more rows than the limit")

// ReadTx returns the usage selected by q: a row for each combination of its parts, in their order,
// by day first. Without parts it is one row. It reads a row for each day and series, for any number
// of requests. It returns ErrTooManyRows above the limit.
func ReadTx(tx *store.Tx, q Query) ([]UsageRow, error) {
	text, args := q.Statement()
	parts := q.groupings()
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
		f := &r.Sums
		dest = append(dest, &f.Requests, &f.Billed, &f.Failed, &f.Prompt, &f.Cached, &f.Completion, &f.Images, &f.Clips, &f.VideoMS,
			&f.Charged, &f.LineCost, &f.LineCosts, &f.KnownCost)
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
func (r *UsageRow) dest(part By, day *int64) any {
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
	"cost_nano", "line_cost_nano", "line_costs", "known_cost_nano")

func sumsOf(columns ...string) string {
	var sums []string
	for _, column := range columns {
		sums = append(sums, store.Sum("d."+column))
	}
	return strings.Join(sums, ", ")
}

// ExcludedTx sums the requests left out by q for their lines.
func ExcludedTx(tx *store.Tx, q Query) (Sums, error) {
	if len(q.ExceptLines) == 0 || q.Line != "" {
		return Sums{}, nil
	}
	q.OnlyLines, q.ExceptLines, q.By, q.Limit = q.ExceptLines, nil, nil, 1
	rows, err := ReadTx(tx, q)
	if err != nil || len(rows) == 0 {
		return Sums{}, err
	}
	return rows[0].Sums, nil
}

// parts returns the groupings of q, in the order of its columns.
func (q Query) groupings() (parts []By) {
	for _, part := range Groupings() {
		if slices.Contains(q.By, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// tables returns the tables to read: a report only by day needs no names.
func (q Query) tables() string {
	if q.Account+q.Key+q.Model+q.Line+q.Endpoint == "" && len(q.ExceptLines)+len(q.OnlyLines) == 0 &&
		!slices.ContainsFunc(q.By, func(part By) bool { return part != ByDay }) {
		return `ledger_day d`
	}
	return `ledger_series s JOIN ledger_day d ON d.series = s.id`
}

// Statement returns the statement of ReadTx.
func (q Query) Statement() (text string, args []any) {
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
	among := func(operator string, lines []string) {
		places := make([]string, len(lines))
		for i, line := range lines {
			args = append(args, line)
			places[i] = "$" + strconv.Itoa(len(args))
		}
		if len(lines) > 0 {
			where = append(where, "s.line "+operator+" ("+strings.Join(places, ", ")+")")
		}
	}
	if q.Line == "" {
		among("NOT IN", q.ExceptLines)
	}
	among("IN", q.OnlyLines)
	add("d.day >=", q.Since)
	if q.Until > 0 {
		add("d.day <", q.Until)
	}
	for _, part := range q.groupings() {
		if part == ByDay {
			columns = append(columns, "d.day")
		} else {
			columns = append(columns, "s."+string(part))
		}
	}
	text = `SELECT ` + strings.Join(append(columns, usageSums), ", ") + ` FROM ` + q.tables() + ` WHERE ` + strings.Join(where, " AND ")
	if len(columns) > 0 {
		text += ` GROUP BY ` + strings.Join(columns, ", ") + ` ORDER BY ` + strings.Join(columns, ", ")
	}
	args = append(args, q.Limit+1)
	return text + ` LIMIT $` + strconv.Itoa(len(args)), args
}
