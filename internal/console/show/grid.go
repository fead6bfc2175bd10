package show

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/books"
	"tollgate/internal/ledger/spending"
	"tollgate/internal/store"
)

// maxUsageRows bounds the rows of usage by day and group read for a page.
const maxUsageRows = 10_000

// chartSeries is the number of groups with their own series in a chart.
const chartSeries = 6

// week is the minimum number of days in a chart.
const week = 7

// monthDays is the number of days in the charts of MonthTx.
const monthDays = 30

// grid is usage by day and group. A group is, for example, a model or a key.
type grid struct {
	days    []gridDay
	groups  []gridGroup // in display order
	total   spending.Sums
	tooMany bool // there are too many groups to read
}

// gridDay is the usage of a UTC day.
type gridDay struct {
	date time.Time
	spending.Sums
}

// gridGroup is the usage of a group. charged has the charges in nano-dollars, by day. It is nil if usage was
// not read by day and group.
type gridGroup struct {
	name string
	spending.Sums
	charged []int64
}

// gridTx reads usage by day and group. If there are too many rows, it reads usage by day and usage
// by group separately.
func gridTx(tx *store.Tx, q spending.Query, by spending.By) (grid, error) {
	g := grid{days: make([]gridDay, q.Until-q.Since)}
	for i := range g.days {
		g.days[i].date = time.Unix((q.Since+int64(i))*24*60*60, 0).UTC()
	}
	q.Limit = maxUsageRows
	read := func(by ...spending.By) ([]spending.UsageRow, error) {
		q.By = by
		return spending.ReadTx(tx, q)
	}
	rows, err := read(spending.ByDay, by)
	if err == nil || !errors.Is(err, spending.ErrTooManyRows) {
		g.add(rows, by)
		return g, err
	}
	if rows, err = read(spending.ByDay); err != nil {
		return g, err
	}
	g.add(rows, spending.ByDay)
	g.groups = nil
	if rows, err = read(by); errors.Is(err, spending.ErrTooManyRows) {
		g.tooMany = true
		return g, nil
	}
	for i := range rows {
		g.groups = append(g.groups, gridGroup{name: rows[i].Value(by), Sums: rows[i].Sums})
	}
	g.sort(by)
	return g, err
}

// add puts rows of days and groups into an empty grid.
func (g *grid) add(rows []spending.UsageRow, by spending.By) {
	days, indexes := map[string]int{}, map[string]int{}
	for i, d := range g.days {
		days[ui.Day(d.date)] = i
	}
	for i := range rows {
		day, name := days[rows[i].Day], rows[i].Value(by)
		n, ok := indexes[name]
		if !ok {
			n = len(g.groups)
			indexes[name] = n
			g.groups = append(g.groups, gridGroup{name: name, charged: make([]int64, len(g.days))})
		}
		p := &g.groups[n]
		p.Sums, g.total, g.days[day].Sums = p.Plus(rows[i].Sums), g.total.Plus(rows[i].Sums), g.days[day].Plus(rows[i].Sums)
		p.charged[day] += int64(rows[i].Charged)
	}
	g.sort(by)
	g.trim()
}

// sort sorts groups by their charges, highest first. If the groups are days, the newest is first.
func (g *grid) sort(by spending.By) {
	slices.SortFunc(g.groups, func(a, b gridGroup) int {
		if by == spending.ByDay {
			return cmp.Compare(b.name, a.name)
		}
		return cmp.Or(cmp.Compare(b.Charged, a.Charged), cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.name, b.name))
	})
}

// namesTx returns names of the first groups by id, or nil if the groups have no names besides their ids.
func (g *grid) namesTx(tx *store.Tx, by spending.By) (map[string]string, error) {
	ids := make([]string, 0, maxGroups)
	for _, p := range g.groups[:min(len(g.groups), maxGroups)] {
		ids = append(ids, p.name)
	}
	switch by {
	case spending.ByAccount:
		return account.AccountNamesTx(tx, ids)
	case spending.ByKey:
		names, err := account.KeyNamesTx(tx, ids)
		for id, name := range names {
			names[id] = labelOfHint(name)
		}
		return names, err
	}
	return nil, nil
}

// trim removes the days before the first request, but keeps the last week.
func (g *grid) trim() {
	start := 0
	for start < len(g.days)-week && g.days[start].Requests == 0 {
		start++
	}
	g.days = g.days[start:]
	for i, p := range g.groups {
		if p.charged != nil {
			g.groups[i].charged = p.charged[start:]
		}
	}
}

func (g *grid) buckets() (names, axis []ui.Words) {
	for _, d := range g.days {
		names, axis = append(names, ui.Data(ui.Day(d.date))), append(axis, ui.AxisDay(d.date))
	}
	return names, axis
}

// charges returns the chart of charges by day. The chart has a series for each of the first groups if usage was
// read by day and group.
func (g *grid) charges(by spending.By, names map[string]string) ui.Chart {
	days, axis := g.buckets()
	c := ui.Chart{ID: "charges", Title: "Charged a day (UTC)", Unit: ui.InUSD, Buckets: days, Axis: axis,
		EmptyText: "Nothing was charged in these days."}
	total := ui.ChartSeries{Name: "Charged"}
	for _, d := range g.days {
		total.Values = append(total.Values, int64(d.Charged))
	}
	if by == spending.ByDay || len(g.groups) == 0 || g.groups[0].charged == nil {
		c.Series = []ui.ChartSeries{total}
		return c
	}
	rest := ui.ChartSeries{Name: "Other", Rest: true, Values: make([]int64, len(g.days))}
	for i, p := range g.groups {
		switch {
		case p.Charged == 0:
		case i < chartSeries:
			c.Series = append(c.Series, ui.ChartSeries{Name: groupName(p.name, names), Values: p.charged})
		default:
			for day, charged := range p.charged {
				rest.Values[day] += charged
			}
		}
	}
	if len(g.groups) > chartSeries && g.groups[chartSeries].Charged > 0 {
		c.Series = append(c.Series, rest)
	}
	return c
}

func (g *grid) counts() ui.Chart {
	days, axis := g.buckets()
	c := ui.Chart{ID: "requests", Title: "Requests a day (UTC)", Unit: ui.InCount, Buckets: days, Axis: axis,
		EmptyText: "No requests in these days."}
	answeredSeries, failedSeries := ui.ChartSeries{Name: "Answered"}, ui.ChartSeries{Name: "Failed"}
	for _, d := range g.days {
		answeredSeries.Values, failedSeries.Values = append(answeredSeries.Values, d.Requests-d.Failed), append(failedSeries.Values, d.Failed)
	}
	c.Series = []ui.ChartSeries{answeredSeries, failedSeries}
	return c
}

// MonthTx returns the charts of the charges and the requests of an account in the last 30 days. If
// accountID is empty, the charts show all accounts. Requests in except are left out.
func MonthTx(tx *store.Tx, accountID string, except spending.RequestSet) (charges, counts ui.Chart, err error) {
	nowMS, err := tx.NowMS()
	if err != nil {
		return charges, counts, err
	}
	today := books.DayOf(nowMS)
	g, err := gridTx(tx, spending.Query{Account: accountID, Except: except, Since: max(0, today-monthDays+1), Until: today + 1},
		spending.ByDay)
	charges, counts = g.charges(spending.ByDay, nil), g.counts()
	charges.Title, counts.Title = "Charged in the last 30 days (UTC)", "Requests of the last 30 days (UTC)"
	return charges, counts, err
}
