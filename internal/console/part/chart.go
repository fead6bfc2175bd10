package part

import (
	"strconv"
	"strings"

	"tollgate/internal/money"
)

// Unit is what the values of a chart are.
type Unit string

// The units.
const (
	InUSD   Unit = "usd"   // nano-dollars
	InCount Unit = "count" // things
	InMS    Unit = "ms"    // milliseconds
)

// Chart is columns over time, stacked by series, drawn here: it needs no script,
// prints, and has its figures as a table beside it. Six series have a colour;
// name what is left over Other and give it as the last.
type Chart struct {
	ID      string // unique on the page
	Title   string
	Unit    Unit
	Buckets []string // what each column is, as `3 May`
	Series  []ChartSeries
	None    string // what stands there when all values are zero
}

// ChartSeries is one of a chart. Values are one a bucket, never negative.
type ChartSeries struct {
	Name   string
	Rest   bool // it is what is left over
	Values []int64
}

// The drawing's own units.
const (
	chartWidth, chartHeight = 1000, 200
	maxLabels               = 10
)

// Shown is a value as it is read.
func (c Chart) Shown(v int64) string {
	switch c.Unit {
	case InUSD:
		return USD(money.Amount(v))
	case InMS:
		return Span(v)
	}
	return Thousands(v)
}

// Empty tells whether all values are zero.
func (c Chart) Empty() bool { return c.most() == 0 }

// most is the sum of the highest column.
func (c Chart) most() int64 {
	var most int64
	for i := range c.Buckets {
		most = max(most, c.sum(i))
	}
	return most
}

func (c Chart) sum(bucket int) (sum int64) {
	for _, s := range c.Series {
		sum += s.Values[bucket]
	}
	return sum
}

// top is the end of the scale: 1, 2 or 5 times a power of ten, at least most.
func (c Chart) top() int64 {
	most := c.most()
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{1, 2, 5} {
			if unit > 1<<59 || step*unit >= most {
				return max(step*unit, most)
			}
		}
	}
}

// Scale are the labels of the scale, from its end down.
func (c Chart) Scale() []string {
	top := c.top()
	half := c.Shown(top / 2)
	if top < 2 || c.Unit == InCount && top%2 == 1 || c.Unit == InUSD && top/2 > int64(cent) && top/2%int64(cent) != 0 {
		half = "" // it would be rounded, and stand at another place
	}
	return []string{c.Shown(top), half, c.Shown(0)}
}

// Labels are those of the axis: all buckets where there are few, else some.
func (c Chart) Labels() []string {
	every := (len(c.Buckets) + maxLabels - 1) / maxLabels
	var labels []string
	for i := 0; i < len(c.Buckets); i += max(every, 1) {
		labels = append(labels, c.Buckets[i])
	}
	return labels
}

// Drawn is one series as a path.
type Drawn struct {
	Class, Name, Path, Total string
}

// Drawing are the series as paths, one each, the first at the bottom.
func (c Chart) Drawing() []Drawn {
	top := float64(c.top())
	below := make([]int64, len(c.Buckets))
	drawn := make([]Drawn, len(c.Series))
	wide := float64(chartWidth) / float64(max(len(c.Buckets), 1))
	for n, s := range c.Series {
		var path strings.Builder
		var total int64
		for i, v := range s.Values {
			if v > 0 {
				height := float64(chartHeight) * float64(v) / top
				y := float64(chartHeight) * (1 - float64(below[i]+v)/top)
				path.WriteString("M" + coordinate(float64(i)*wide+wide*0.1) + " " + coordinate(y) +
					"h" + coordinate(wide*0.8) + "v" + coordinate(height) + "h-" + coordinate(wide*0.8) + "z")
			}
			below[i] += v
			total += v
		}
		class := "s" + strconv.Itoa(min(n+1, 7))
		if s.Rest {
			class = "s7"
		}
		drawn[n] = Drawn{Class: class, Name: s.Name, Path: path.String(), Total: c.Shown(total)}
	}
	return drawn
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Spot is a column that says its figures when it is pointed at.
type Spot struct {
	X, Width string
	Words    string
}

// Spots are the columns that say their figures.
func (c Chart) Spots() []Spot {
	wide := float64(chartWidth) / float64(max(len(c.Buckets), 1))
	spots := make([]Spot, len(c.Buckets))
	for i, bucket := range c.Buckets {
		words := bucket + ": " + c.Shown(c.sum(i))
		spots[i] = Spot{X: coordinate(float64(i) * wide), Width: coordinate(wide), Words: words}
	}
	return spots
}

// Table are the chart's figures.
func (c Chart) Table() DataTable {
	t := DataTable{Caption: c.Title, Columns: []Column{{Title: ""}}}
	for _, s := range c.Series {
		t.Columns = append(t.Columns, Column{Title: s.Name, Right: true})
	}
	for i, bucket := range c.Buckets {
		row := DataRow{Cells: []any{Text{Text: bucket}}}
		for _, s := range c.Series {
			row.Cells = append(row.Cells, c.cell(s.Values[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (c Chart) cell(v int64) any {
	switch c.Unit {
	case InUSD:
		return Money{Amount: money.Amount(v)}
	case InMS:
		return Took{v}
	}
	return Count{v}
}
