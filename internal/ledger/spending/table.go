package spending

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/sheet"
	"tollgate/internal/money"
	"tollgate/internal/store"
)

// Breakdown is a usage report as the APIs and the console show it.
type Breakdown struct {
	// Since and Until are the first and the last UTC day, YYYY-MM-DD.
	Since, Until string
	By           []By // in the order of the rows' columns
	Rows         []UsageRow
	Lines        bool // show lines and their costs
	// Sandbox sums the requests to sandbox lines, which the rows exclude. It is nil if the rows
	// exclude none.
	Sandbox *Sums
	// Names has the names of ids by grouping. The column of such a grouping is followed by a column
	// with the names, such as account_name. If nil, only the ids are shown.
	Names map[By]map[string]string
}

// Bounds of a report.
const (
	maxUsageRows = 10_000
	usageDays    = 30 // length of a report without since
)

// Params returns the parameters of a report, besides the groupings as filters.
func Params() []string { return []string{"group_by", "since", "until"} }

// ParseQuery reads the parameters of a report with get: group_by (groupings, separated by commas),
// since and until (a UTC day or an RFC 3339 time; until is the last day), and a filter for each
// allowed grouping except the day. nowMS is in Unix milliseconds. Errors are for the client.
func ParseQuery(get func(name string) string, allowed []By, nowMS int64) (Query, error) {
	q := Query{Limit: maxUsageRows}
	if text := get("group_by"); text != "" {
		for name := range strings.SplitSeq(text, ",") {
			group := By(strings.TrimSpace(name))
			if !slices.Contains(allowed, group) {
				return q, fault.At(fault.InvalidRequest, "group_by", "group_by takes %s, with commas between; %q is none of them.",
					joinGroupings(allowed), fault.Excerpt(string(group)))
			}
			q.By = append(q.By, group)
		}
	}
	for group, to := range map[By]*string{
		ByAccount: &q.Account, ByKey: &q.Key, ByModel: &q.Model, ByLine: &q.Line, ByEndpoint: &q.Endpoint,
	} {
		if slices.Contains(allowed, group) {
			*to = get(string(group))
		}
	}
	last := books.DayOf(nowMS)
	for name, to := range map[string]*int64{"since": &q.Since, "until": &last} {
		if text := get(name); text != "" {
			at, err := utcDay(text)
			if err != nil {
				return q, fault.At(fault.InvalidRequest, name, "%s must be a UTC day such as 2026-05-31, or an RFC 3339 time.", name)
			}
			*to = at
		}
	}
	if get("since") == "" {
		q.Since = max(0, last-usageDays+1)
	}
	if last < q.Since {
		return q, fault.At(fault.InvalidRequest, "until", "until must not be before since.")
	}
	q.Until = last + 1
	return q, nil
}

func joinGroupings(groups []By) string {
	var names []string
	for _, p := range groups {
		names = append(names, string(p))
	}
	return strings.Join(names, ", ")
}

// utcDay parses a UTC day or an RFC 3339 time, and returns the day in days since 1970.
func utcDay(text string) (int64, error) {
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err == nil && (at.Year() < 1970 || at.Year() > 9999) {
		err = errors.New("out of range")
	}
	return books.DayOf(at.UnixMilli()), err
}

// TableTx reads the report of q. If it has too many rows, the error is a *fault.Error for the client.
func TableTx(tx *store.Tx, q Query, lines bool) (Breakdown, error) {
	rows, err := ReadTx(tx, q)
	if errors.Is(err, ErrTooManyRows) {
		return Breakdown{}, fault.At(fault.InvalidRequest, "group_by",
			"This has more than %d rows. Choose a shorter span, fewer parts, or a filter.", q.Limit)
	}
	b := Breakdown{Since: dayName(q.Since), Until: dayName(q.Until - 1), By: q.groupings(), Rows: rows, Lines: lines}
	if err == nil && !q.Except.isEmpty() && q.Line == "" {
		var excluded Sums
		excluded, err = ExcludedTx(tx, q)
		b.Sandbox = &excluded
	}
	return b, err
}

func dayName(day int64) string { return time.Unix(day*24*60*60, 0).UTC().Format(time.DateOnly) }

// Total returns the sums of all rows.
func (r *Breakdown) Total() Sums {
	var sum Sums
	for _, row := range r.Rows {
		sum = sum.Plus(row.Sums)
	}
	return sum
}

// Plus adds two sums. A figure stops at money.Max.
func (f Sums) Plus(o Sums) Sums {
	return Sums{
		Requests: money.Plus(f.Requests, o.Requests), Billed: money.Plus(f.Billed, o.Billed), Failed: money.Plus(f.Failed, o.Failed),
		Prompt: money.Plus(f.Prompt, o.Prompt), Cached: money.Plus(f.Cached, o.Cached), Completion: money.Plus(f.Completion, o.Completion),
		Charged: money.Plus(f.Charged, o.Charged), LineCost: money.Plus(f.LineCost, o.LineCost), LineCosts: money.Plus(f.LineCosts, o.LineCosts),
		KnownCost: money.Plus(f.KnownCost, o.KnownCost), Quantities: f.Quantities.Plus(o.Quantities),
	}
}

// Margin returns the charges of the requests with a known cost minus that cost. It reports false if
// no request has a known cost.
func (f Sums) Margin() (money.Amount, bool) { return f.KnownCost - f.LineCost, f.LineCosts > 0 }

// Value returns the row's value of a grouping.
func (r *UsageRow) Value(group By) string {
	if group == ByDay {
		return r.Day
	}
	return *r.dest(group, nil).(*string)
}

// nameOf returns the column of a grouping's names.
func nameOf(group By) string { return string(group) + "_name" }

// IDs returns the distinct values of a grouping.
func (r *Breakdown) IDs(group By) (ids []string) {
	seen := map[string]bool{}
	for i := range r.Rows {
		if id := r.Rows[i].Value(group); id != "" && !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// units returns the units of all figures of the report.
func (r *Breakdown) units() []measure.Unit {
	all := r.Total().Quantities
	if r.Sandbox != nil {
		all = all.Plus(r.Sandbox.Quantities)
	}
	return all.Units()
}

// figures returns the columns of a report with their JSON values. An unknown value is empty.
func (f Sums) figures(units []measure.Unit, lines bool) []measure.NamedValue {
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	out := []measure.NamedValue{
		{Name: "requests", Value: n(f.Requests)}, {Name: "billed_requests", Value: n(f.Billed)},
		{Name: "failed_requests", Value: n(f.Failed)}, {Name: "prompt_tokens", Value: n(f.Prompt)},
		{Name: "cached_tokens", Value: n(f.Cached)}, {Name: "completion_tokens", Value: n(f.Completion)},
	}
	for _, unit := range units {
		out = append(out, f.Quantities.Values(unit)...)
	}
	out = append(out, measure.NamedValue{Name: "cost_usd", Value: f.Charged.String()})
	if !lines {
		return out
	}
	lineCost, left := "", ""
	if margin, known := f.Margin(); known {
		lineCost, left = f.LineCost.String(), margin.String()
	}
	return append(out, []measure.NamedValue{
		{Name: "line_cost_usd", Value: lineCost}, {Name: "line_cost_requests", Value: n(f.LineCosts)}, {Name: "margin_usd", Value: left},
	}...)
}

// MarshalJSON encodes a report. Unknown values are null.
func (r Breakdown) MarshalJSON() ([]byte, error) {
	units := r.units()
	show := func(groups []By, row *UsageRow) json.RawMessage {
		b := []byte{'{'}
		member := func(name, value string) {
			if len(b) > 1 {
				b = append(b, ',')
			}
			if value == "" {
				value = "null"
			}
			b = append(strconv.AppendQuote(b, name), ':')
			b = append(b, value...)
		}
		for _, group := range groups {
			text, _ := json.Marshal(row.Value(group)) // a string cannot fail
			member(string(group), string(text))
			if names, named := r.Names[group]; named {
				text, _ = json.Marshal(names[row.Value(group)])
				member(nameOf(group), string(text))
			}
		}
		for _, f := range row.figures(units, r.Lines) {
			member(f.Name, f.Value)
		}
		return append(b, '}')
	}
	data := make([]json.RawMessage, len(r.Rows))
	for i := range r.Rows {
		data[i] = show(r.By, &r.Rows[i])
	}
	by := r.By
	if by == nil {
		by = []By{}
	}
	var sandbox json.RawMessage
	if r.Sandbox != nil {
		sandbox = show(nil, &UsageRow{Sums: *r.Sandbox})
	}
	return json.Marshal(struct {
		Object  string            `json:"object"`
		Since   string            `json:"since"`
		Until   string            `json:"until"`
		By      []By              `json:"group_by"`
		Total   json.RawMessage   `json:"total"`
		Sandbox json.RawMessage   `json:"sandbox,omitempty"`
		Data    []json.RawMessage `json:"data"`
	}{"usage.report", r.Since, r.Until, by, show(nil, &UsageRow{Sums: r.Total()}), sandbox, data})
}

// CSV writes a report's rows below a line with the names of the columns. Unknown values are empty.
func (r *Breakdown) CSV() ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	columns, rows := r.Cells()
	if err := w.WriteAll(append([][]string{columns}, rows...)); err != nil {
		return nil, fmt.Errorf("write the usage: %w", err)
	}
	return out.Bytes(), nil
}

// Cells returns the report's rows as CSV has them, and the names of the columns.
func (r *Breakdown) Cells() (columns []string, rows [][]string) {
	for _, group := range r.By {
		columns = append(columns, string(group))
		if _, named := r.Names[group]; named {
			columns = append(columns, nameOf(group))
		}
	}
	units := r.units()
	for _, f := range (Sums{}).figures(units, r.Lines) {
		columns = append(columns, f.Name)
	}
	rows = make([][]string, len(r.Rows))
	for i := range r.Rows {
		for _, group := range r.By {
			rows[i] = append(rows[i], r.Rows[i].Value(group))
			if names, named := r.Names[group]; named {
				rows[i] = append(rows[i], sheet.Cell(names[r.Rows[i].Value(group)]))
			}
		}
		for _, f := range r.Rows[i].figures(units, r.Lines) {
			rows[i] = append(rows[i], f.Value)
		}
	}
	return columns, rows
}
