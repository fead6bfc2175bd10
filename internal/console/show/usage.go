package show

import (
	"cmp"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/catalog"
	"tollgate/internal/catalog/offer"
	"tollgate/internal/console/page"
	"tollgate/internal/console/ui"
	"tollgate/internal/fault"
	"tollgate/internal/ledger/measure"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/operator"
	"tollgate/internal/store"
)

// UsageView configures a usage page for one section of the console.
type UsageView struct {
	Path    string        // path of the page below page.Base
	Account string        // if empty, the page shows all accounts, with lines and provider costs
	Groups  []spending.By // possible groupings; the first is the default
	DayPath string        // prefix of the address of a UTC day's requests, below page.Base; if empty, there is no such page
	// Field returns the filter field of a group with the given value, and the id named by the value. If the
	// value is invalid, the field has the error, and id is empty.
	Field func(tx *store.Tx, by spending.By, value string) (f ui.FormField, id string, err error)
}

// Usage is the content of a usage page for a span of days.
type Usage struct {
	Spans    ui.Tabs
	Groups   ui.Tabs
	Filters  ui.Filters
	Total    spending.Sums
	Figures  ui.FigureRow // set by the section
	Charges  ui.Chart
	Counts   ui.Chart
	Table    ui.DataTable
	CSV      string     // address of the table as a file
	DailyCSV string     // address of the file with a row per day
	TooMany  *ui.Notice // set if there are too many rows
	Sandbox  ui.Group   // requests to sandbox lines, which all figures leave out
	Empty    *ui.EmptyState
}

// MonthFilter returns the bounds of the month in the page's address, in Unix milliseconds, and adds the month
// to chosen. It returns zeros if there is no month or an invalid one.
func MonthFilter(v *page.Visit, chosen url.Values) (sinceMS, untilMS int64) {
	first, err := time.Parse(operator.MonthFormat, v.Query("month"))
	if err != nil || first.Year() < 1970 {
		return 0, 0
	}
	chosen.Set("month", first.Format(operator.MonthFormat))
	return first.UnixMilli(), first.AddDate(0, 1, 0).UnixMilli()
}

const (
	// usageMonths is the number of past months to choose from.
	usageMonths = 12
	// maxGroups is the maximum number of rows in the table.
	maxGroups = 50
)

// groupLabels are the singular and the plural of the groups.
var groupLabels = map[spending.By][2]ui.Words{
	spending.ByModel: {"Model", "Models"}, spending.ByKey: {"Key", "Keys"}, spending.ByEndpoint: {"Endpoint", "Endpoints"},
	spending.ByAccount: {"Account", "Accounts"}, spending.ByLine: {"Line", "Lines"}, spending.ByDay: {"Day (UTC)", "Days"},
}

// GroupLabel returns the singular of a group.
func GroupLabel(by spending.By) ui.Words { return groupLabels[by][0] }

// EndpointField returns the field to choose an endpoint of a catalog's models.
func EndpointField(s *catalog.Snapshot, chosen string) ui.FormField {
	var paths []string
	for _, m := range s.Models() {
		for _, path := range offer.Endpoints(m) {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return Choice(string(spending.ByEndpoint), GroupLabel(spending.ByEndpoint), chosen, Words(paths))
}

// selection is the usage selected by the address of a page.
type selection struct {
	UsageView
	span   string
	by     spending.By
	query  spending.Query
	values url.Values // known parameters of the address
	fields []ui.FormField
	// filterError is the error of a filter; it may be empty.
	filterError ui.Words
	days        [2]string // the first and the last day, as YYYY-MM-DD
	nowMS       int64
}

// selectTx reads the address of a page. An unknown span means 30 days, and an unknown grouping means the first
// of s.Groups.
func (s UsageView) selectTx(tx *store.Tx, v *page.Visit) (selection, error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return selection{}, err
	}
	a := selection{UsageView: s, by: s.Groups[0], values: url.Values{}, nowMS: nowMS}
	for _, name := range append([]string{"span", "by"}, s.filters()...) {
		if value := v.Query(name); value != "" {
			a.values.Set(name, value)
		}
	}
	if by := spending.By(a.values.Get("by")); slices.Contains(s.Groups, by) {
		a.by = by
	}
	span, since, until := parseSpan(a.values.Get("span"), nowMS)
	a.span, a.days = span, [2]string{since, until}
	params := map[string]string{"since": since, "until": until}
	for _, name := range s.filters() {
		field, id, err := s.Field(tx, spending.By(name), a.values.Get(name))
		if err != nil {
			return a, err
		}
		params[name], a.fields, a.filterError = id, append(a.fields, field), cmp.Or(a.filterError, field.Error)
	}
	a.query, err = spending.ParseQuery(func(name string) string { return params[name] }, s.Groups, nowMS)
	if s.Account != "" {
		a.query.Account = s.Account
		return a, err
	}
	if err == nil {
		var sandbox catalog.SandboxUse
		sandbox, err = catalog.SandboxTx(tx)
		a.query.Except = spending.RequestSet(sandbox)
	}
	return a, err
}

func (s UsageView) filters() (names []string) {
	for _, by := range s.Groups {
		if by != spending.ByDay {
			names = append(names, string(by))
		}
	}
	return names
}

// parseSpan reads a span: a number of days up to today, or a month such as 2026-05. Any other text means 30
// days. since and until are the first and the last day.
func parseSpan(span string, nowMS int64) (name, since, until string) {
	today := time.UnixMilli(nowMS).UTC()
	if first, err := time.Parse(operator.MonthFormat, span); err == nil {
		last := first.AddDate(0, 1, -1)
		if last.After(today) {
			last = today
		}
		return span, ui.Day(first), ui.Day(last)
	}
	days := map[string]int{"7": 7, "30": 30, "90": 90}[span]
	if days == 0 {
		span, days = "30", 30
	}
	return span, ui.Day(today.AddDate(0, 0, 1-days)), ui.Day(today)
}

// link returns the address of the page at subpath with changed parameters. change has alternating names and
// values.
func (a selection) link(subpath string, change ...string) string {
	values := url.Values{}
	for name, value := range a.values {
		values[name] = value
	}
	for i := 0; i < len(change); i += 2 {
		values.Set(change[i], change[i+1])
	}
	return page.AddressOf(a.Path+subpath, values)
}

// Read reads the usage selected by a visit.
func (s UsageView) Read(v *page.Visit) (u Usage, err error) {
	err = v.View(func(tx *store.Tx) error {
		a, err := s.selectTx(tx, v)
		if err != nil {
			return err
		}
		if a.filterError != "" {
			u = Usage{Spans: a.spans(), Filters: a.filterForm(), Empty: page.NoneMatch(a.Path, "Clear filters")}
			return nil
		}
		g, err := gridTx(tx, a.query, a.by)
		if err != nil {
			return err
		}
		names, err := g.namesTx(tx, a.by)
		if err != nil {
			return err
		}
		excluded, err := spending.ExcludedTx(tx, a.query)
		if err != nil {
			return err
		}
		u = a.usage(g, names)
		u.Sandbox = SandboxNote(excluded, a.query.Except.Lines)
		u.Filters = a.filterForm()
		if u.Empty != nil && u.Filters.Clear != "" {
			u.Empty = page.NoneMatch(a.Path, "Clear filters")
		}
		return nil
	})
	return u, err
}

// SandboxNote describes the requests to sandbox lines and links to the usage of each line. Totals leave these
// requests out. It returns nil if there were none.
func SandboxNote(s spending.Sums, lines []string) ui.Group {
	if s.Requests == 0 {
		return nil
	}
	note := ui.Group{ui.Text{Text: ui.Sayf("Not counted: %s to the sandbox, charged %s.", ui.Requests(s.Requests), ui.USD(s.Charged))}}
	for _, line := range lines {
		note = append(note, ui.Link{Href: page.AddressOf("/operator/usage", url.Values{"line": {line}}), Text: ui.Data(line)})
	}
	return note
}

func (a selection) usage(g grid, names map[string]string) Usage {
	u := Usage{Total: g.total, Spans: a.spans(), Groups: a.groups(), CSV: a.link("/table"),
		DailyCSV: a.link("/table", "daily", "yes")}
	u.Charges = g.charges(a.by, names)
	u.Counts = g.counts()
	u.Table = a.table(g, names)
	if g.tooMany {
		u.TooMany = &ui.Notice{Tone: ui.Warn, Title: "There are too many rows for this page.",
			Text: ui.Sayf("The charts are complete. Choose a shorter span, another grouping or a filter to see usage by %s.", ui.Words(a.by))}
	}
	if g.total.Requests == 0 {
		u.Empty = &ui.EmptyState{Title: "No requests in these days", Text: "Usage is summed by UTC day."}
	}
	return u
}

func (a selection) spans() ui.Tabs {
	tabs := ui.Tabs{Label: "Days"}
	for _, choice := range a.spanChoices()[:5] {
		tabs.Items = append(tabs.Items, ui.Tab{Href: a.link("", "span", choice.Value), Text: choice.Label, Current: choice.Selected})
	}
	return tabs
}

func (a selection) spanChoices() []ui.Option {
	choices := []ui.Option{{Value: "7", Label: "7 days"}, {Value: "30", Label: "30 days"}, {Value: "90", Label: "90 days"}}
	return Select(append(choices, Months(a.nowMS)...), a.span)
}

// Months returns the newest UTC months as options, such as 2026-05.
func Months(nowMS int64) (choices []ui.Option) {
	now := time.UnixMilli(nowMS).UTC()
	for back := range usageMonths + 1 {
		month := time.Date(now.Year(), now.Month()-time.Month(back), 1, 0, 0, 0, 0, time.UTC)
		choices = append(choices, ui.Option{Value: month.Format(operator.MonthFormat), Label: ui.Month(month)})
	}
	return choices
}

// Choice returns a filter field to choose All or one of options. An unknown value becomes an option too.
func Choice(name string, label ui.Words, value string, options []ui.Option) ui.FormField {
	return ui.FormField{Name: name, Label: label, Kind: ui.Choice, Options: Select(append([]ui.Option{{Label: "All"}}, options...), value)}
}

// Words returns an option for each word.
func Words(words []string) (options []ui.Option) {
	for _, word := range words {
		options = append(options, ui.Option{Value: word, Label: ui.Data(word)})
	}
	return options
}

// Select selects an option by its value. If no option has the value, Select adds one.
func Select(choices []ui.Option, value string) []ui.Option {
	for i := range choices {
		if choices[i].Value == value {
			choices[i].Selected = true
			return choices
		}
	}
	return append(choices, ui.Option{Value: value, Label: ui.Data(value), Selected: true})
}

func (a selection) groups() ui.Tabs {
	tabs := ui.Tabs{Label: "Grouped by"}
	for _, by := range a.Groups {
		tabs.Items = append(tabs.Items, ui.Tab{Href: a.link("", "by", string(by)), Text: groupLabels[by][1], Current: by == a.by})
	}
	return tabs
}

func (a selection) filterForm() ui.Filters {
	f := ui.Filters{Action: page.Base + a.Path, Fields: append([]ui.FormField{
		{Name: "span", Label: "Span", Kind: ui.Choice, Options: a.spanChoices()},
		{Name: "by", Kind: ui.Hidden, Value: string(a.by)},
	}, a.fields...)}
	for _, name := range a.filters() {
		if a.values.Get(name) != "" {
			f.Clear = page.AddressOf(a.Path, url.Values{"span": {a.span}, "by": {string(a.by)}})
		}
	}
	return f
}

// usageColumn is a column of the table with the function that returns its cells.
type usageColumn struct {
	title ui.Words
	cell  func(s spending.Sums) any
}

// columns returns the columns of the table, with money before tokens. A unit without requests in total has no
// column.
func (a selection) columns(total spending.Sums) []usageColumn {
	count := func(title ui.Words, n func(s spending.Sums) int64) usageColumn {
		return usageColumn{title, func(s spending.Sums) any { return ui.Count{N: n(s)} }}
	}
	all := []usageColumn{count("Requests", func(s spending.Sums) int64 { return s.Requests }),
		count("Failed", func(s spending.Sums) int64 { return s.Failed }),
		{"Charged", func(s spending.Sums) any { return ui.Money{Amount: s.Charged} }}}
	if a.Account == "" {
		all = append(all, usageColumn{"Provider cost", providerCost}, usageColumn{"Margin", margin}, usageColumn{"%", marginShare})
	}
	all = append(all, count("Prompt tokens", func(s spending.Sums) int64 { return s.Prompt }),
		count("Answer tokens", func(s spending.Sums) int64 { return s.Completion }))
	for _, unit := range total.Quantities.Units() {
		switch sum := total.Quantities[unit]; {
		case sum.Requests == 0:
		case unit == measure.VideoMS:
			all = append(all, count("Clips", func(s spending.Sums) int64 { return s.Quantities[unit].Requests }))
		default:
			all = append(all, count(ui.Words(unit.Title()), func(s spending.Sums) int64 { return unit.Whole(s.Quantities[unit].N) }))
		}
	}
	return all
}

// unknownCell returns the cell for an unknown provider cost or margin.
func unknownCell() any { return ui.Text{Text: "–", Muted: true} }

func providerCost(s spending.Sums) any {
	if _, known := s.Margin(); !known {
		return unknownCell()
	}
	return ui.Money{Amount: s.LineCost}
}

func margin(s spending.Sums) any {
	amount, known := s.Margin()
	if !known {
		return unknownCell()
	}
	return ui.Money{Amount: amount}
}

// marginShare returns the margin in percent of the charges. Only requests with a known cost count.
func marginShare(s spending.Sums) any {
	amount, known := s.Margin()
	if !known || s.KnownCost <= 0 {
		return unknownCell()
	}
	return ui.Text{Text: ui.Data(strconv.FormatInt(int64(math.Round(float64(amount)/float64(s.KnownCost)*100)), 10) + " %")}
}

// table lists the groups, those with the highest charges first. Days are listed with the newest first.
func (a selection) table(g grid, names map[string]string) ui.DataTable {
	columns := a.columns(g.total)
	t := ui.DataTable{Caption: ui.Sayf("Usage by %s", ui.Words(a.by)), Columns: []ui.Column{{Title: groupLabels[a.by][0]}}}
	for _, c := range columns {
		t.Columns = append(t.Columns, ui.Column{Title: c.title, Right: true})
	}
	cells := func(name ui.Words, s spending.Sums) []any {
		row := []any{name}
		for _, c := range columns {
			row = append(row, c.cell(s))
		}
		return row
	}
	groups := g.groups
	var rest spending.Sums
	if len(groups) > maxGroups {
		for _, p := range groups[maxGroups:] {
			rest = rest.Plus(p.Sums)
		}
		groups = groups[:maxGroups]
	}
	for _, p := range groups {
		t.Rows = append(t.Rows, ui.DataRow{Href: a.drillDown(p.name), Cells: cells(groupName(p.name, names), p.Sums)})
	}
	if n := len(g.groups) - len(groups); n > 0 {
		t.Rows = append(t.Rows, ui.DataRow{Cells: cells(ui.Sayf("%s others", ui.Thousands(int64(n))), rest)})
	}
	if len(t.Rows) > 0 {
		t.Foot = cells("All", g.total)
	}
	return t
}

// drillDown returns the address with more detail about a group: a further grouping, or the requests of a day.
// It returns an empty string if no further detail exists.
func (a selection) drillDown(name string) string {
	switch {
	case name == "" || a.by == spending.ByDay && a.DayPath == "":
		return ""
	case a.by == spending.ByDay:
		return page.Base + a.DayPath + name
	}
	for _, next := range a.Groups {
		if next != a.by && next != spending.ByDay && a.values.Get(string(next)) == "" {
			return a.link("", string(a.by), name, "by", string(next))
		}
	}
	return ""
}

// groupName returns the name of a group for people.
func groupName(name string, names map[string]string) ui.Words {
	if label := names[name]; label != "" {
		return ui.Data(label)
	}
	if name == "" {
		return "none"
	}
	return ui.Data(name)
}

// Download returns the report selected by a visit as a file.
func (s UsageView) Download(v *page.Visit) (page.Responder, error) {
	var report spending.Breakdown
	name := ""
	if err := v.View(func(tx *store.Tx) error {
		a, err := s.selectTx(tx, v)
		if err != nil {
			return err
		}
		if a.filterError != "" {
			return fault.New(fault.InvalidRequest, "%s", a.filterError)
		}
		if name = strings.Join([]string{"usage", a.days[0], a.days[1]}, "-"); v.IsHead() {
			return nil
		}
		a.query.By = []spending.By{a.by}
		if v.Query("daily") != "" {
			a.query.By = append(a.query.By, spending.ByDay)
		}
		if report, err = spending.TableTx(tx, a.query, s.Account == ""); err != nil {
			return err
		}
		return account.FillNamesTx(tx, &report)
	}); err != nil {
		return nil, err
	}
	columns, rows := report.Cells()
	var t ui.DataTable
	for _, name := range columns {
		t.Columns = append(t.Columns, ui.Column{Title: ui.Data(name)})
	}
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		t.Rows = append(t.Rows, ui.DataRow{Cells: cells})
	}
	return page.CSVFile(name, t), nil
}
