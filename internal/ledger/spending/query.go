// Package spending owns the sums of requests by account, key, model, line, endpoint and day for the
// APIs and the console, as JSON and CSV.
//
// Invariants: the package reads only days of series, never requests, so its cost does not grow with
// the number of requests. It writes nothing.
package spending

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/ledger/measure"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// By is a grouping of usage.
type By string

// The groupings, as the APIs name them.
const (
	ByAccount  By = "account"
	ByKey      By = "key"
	ByModel    By = "model"
	ByLine     By = "line"
	ByEndpoint By = "endpoint"
	ByDay      By = "day"
)

// Groupings returns all groupings in the order of the columns.
func Groupings() []By {
	return []By{ByDay, ByAccount, ByKey, ByModel, ByLine, ByEndpoint}
}

// Query selects ended requests by the UTC day of their admission. Empty fields select all.
type Query struct {
	Account, Key, Model, Line, Endpoint string
	Except                              RequestSet // requests to leave out; ignored if Line is set
	only                                RequestSet // if empty, all requests
	Since, Until                        int64      // days since 1970, Since inclusive, Until exclusive; Until 0 means no end
	By                                  []By
	Limit                               int // of rows
}

// RequestSet has the requests to Lines, and the requests to Models without a line. A request without a
// line failed before a line answered.
type RequestSet struct{ Lines, Models []string }

func (e RequestSet) isEmpty() bool { return len(e.Lines)+len(e.Models) == 0 }

// UsageRow is the sum of some requests. Fields outside the grouping are empty.
type UsageRow struct {
	Day                                 string // YYYY-MM-DD
	Account, Key, Model, Line, Endpoint string
	Sums
}

// Sums are sums of ended requests. A request whose client disconnected before the first byte counts
// only in Requests.
type Sums struct {
	Requests, Billed, Failed   int64
	Prompt, Cached, Completion int64 // tokens; Cached is part of Prompt
	Charged                    money.Amount
	LineCost                   money.Amount // the providers' known cost
	LineCosts                  int64        // requests with a known cost
	KnownCost                  money.Amount // the charges of those requests
	Quantities                 measure.Totals
}

// ErrTooManyRows means that usage has more rows than the query's limit.
var ErrTooManyRows = errors.New("usage has more rows than the limit")

// ReadTx returns the usage selected by q: a row for each combination of the groupings, sorted by the
// groupings in the order of the columns. Without a grouping, it returns one row. It returns
// ErrTooManyRows above the limit.
func ReadTx(tx *store.Tx, q Query) ([]UsageRow, error) {
	text, args := q.Statement()
	groups := q.groupings()
	rows, err := tx.Query(text, args...)
	if err != nil {
		return nil, fmt.Errorf("read the usage: %w", err)
	}
	defer rows.Close()
	var out []UsageRow
	for n := 0; rows.Next(); n++ {
		r, err := scanUnit(rows.Scan, groups)
		if err != nil {
			return nil, fmt.Errorf("read the usage: %w", err)
		}
		if last := len(out) - 1; last >= 0 && out[last].sameGroup(&r, groups) {
			out[last].Sums = out[last].Plus(r.Sums)
		} else {
			out = append(out, r)
		}
		if len(out) > q.Limit || n+1 == q.maxRead() {
			return nil, ErrTooManyRows
		}
	}
	if len(groups) == 0 && out == nil {
		out = []UsageRow{{}}
	}
	return out, rows.Err()
}

// maxUnits bounds the rows read for one row of a report: a row for each unit.
const maxUnits = 16

func (q Query) maxRead() int { return maxUnits * (q.Limit + 1) }

// scanUnit scans the sums of one group and unit.
func scanUnit(scan func(dest ...any) error, groups []By) (r UsageRow, err error) {
	var day, quantity int64
	var unit measure.Unit
	var dest []any
	for _, group := range groups {
		dest = append(dest, r.dest(group, &day))
	}
	f := &r.Sums
	err = scan(append(dest, &unit, &f.Requests, &f.Billed, &f.Failed, &f.Prompt, &f.Cached, &f.Completion, &quantity,
		&f.Charged, &f.LineCost, &f.LineCosts, &f.KnownCost)...)
	f.Quantities = measure.Of(unit, f.Billed, quantity)
	if slices.Contains(groups, ByDay) {
		r.Day = dayName(day)
	}
	return r, err
}

func (r *UsageRow) sameGroup(o *UsageRow, groups []By) bool {
	return !slices.ContainsFunc(groups, func(group By) bool { return r.Value(group) != o.Value(group) })
}

// dest returns the destination of a grouping's column.
func (r *UsageRow) dest(group By, day *int64) any {
	switch group {
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

var usageSums = sumsOf("requests", "billed", "failed", "prompt_tokens", "cached_tokens", "completion_tokens", "quantity",
	"cost_nano", "line_cost_nano", "line_costs", "known_cost_nano")

func sumsOf(columns ...string) string {
	var sums []string
	for _, column := range columns {
		sums = append(sums, store.Sum("d."+column))
	}
	return strings.Join(sums, ", ")
}

// ExcludedTx sums the requests that q excludes.
func ExcludedTx(tx *store.Tx, q Query) (Sums, error) {
	if q.Except.isEmpty() || q.Line != "" {
		return Sums{}, nil
	}
	q.only, q.Except, q.By, q.Limit = q.Except, RequestSet{}, nil, 1
	rows, err := ReadTx(tx, q)
	if err != nil || len(rows) == 0 {
		return Sums{}, err
	}
	return rows[0].Sums, nil
}

// groupings returns q.By in the order of the columns.
func (q Query) groupings() (groups []By) {
	for _, group := range Groupings() {
		if slices.Contains(q.By, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// tables returns the tables to read. A report by day alone needs no names.
func (q Query) tables() string {
	if q.Account+q.Key+q.Model+q.Line+q.Endpoint == "" && q.Except.isEmpty() && q.only.isEmpty() &&
		!slices.ContainsFunc(q.By, func(group By) bool { return group != ByDay }) {
		return `ledger_day d`
	}
	return `ledger_series s JOIN ledger_day d ON d.series = s.id`
}

// Statement returns the statement of ReadTx: a row for each combination of the groupings and unit.
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
	among := func(column string, values []string) string {
		places := make([]string, len(values))
		for i, value := range values {
			args = append(args, value)
			places[i] = "$" + strconv.Itoa(len(args))
		}
		return column + " IN (" + strings.Join(places, ", ") + ")"
	}
	match := func(negation string, e RequestSet) {
		var either []string
		if len(e.Lines) > 0 {
			either = append(either, among("s.line", e.Lines))
		}
		if len(e.Models) > 0 {
			either = append(either, "s.line = '' AND "+among("s.model", e.Models))
		}
		if either != nil {
			where = append(where, negation+"("+strings.Join(either, " OR ")+")")
		}
	}
	if q.Line == "" {
		match("NOT ", q.Except)
	}
	match("", q.only)
	add("d.day >=", q.Since)
	if q.Until > 0 {
		add("d.day <", q.Until)
	}
	for _, group := range q.groupings() {
		if group == ByDay {
			columns = append(columns, "d.day")
		} else {
			columns = append(columns, "s."+string(group))
		}
	}
	group, order := strings.Join(append(columns, "d.unit"), ", "), ""
	if len(columns) > 0 {
		order = ` ORDER BY ` + strings.Join(columns, ", ")
	}
	args = append(args, q.maxRead())
	return `SELECT ` + group + `, ` + usageSums + ` FROM ` + q.tables() + `
		WHERE ` + strings.Join(where, " AND ") + ` GROUP BY ` + group + order + ` LIMIT $` + strconv.Itoa(len(args)), args
}
