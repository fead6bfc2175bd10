package ui

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tollgate/internal/money"
)

// ChartUnit is the unit of a chart's values.
type ChartUnit string

// The units.
const (
	InUSD   ChartUnit = "usd"   // nano-dollars
	InCount ChartUnit = "count" // a number of objects
	InMS    ChartUnit = "ms"    // milliseconds
)

// Chart is a stacked column chart over time, drawn as SVG. It needs no script, can be printed, and has a table
// of its figures. Only six series have their own colors. If there are more, the last series must be the sum of
// the others, with the name Other and Rest set.
type Chart struct {
	ID        string // unique on the page
	Title     Words
	Unit      ChartUnit
	Buckets   []Words // names of the columns, such as `2026-05-03`
	Axis      []Words // short names of the columns for the axis; if nil, Buckets
	Series    []ChartSeries
	EmptyText Words // text if all values are zero
}

// ChartSeries is one series of a chart. Values has one value per bucket, never negative.
type ChartSeries struct {
	Name   Words
	Rest   bool // the sum of all series without a color
	Values []int64
}

// Dimensions of the drawing.
const (
	chartWidth, chartHeight = 1000, 200
	maxLabels               = 10
	wideColumns             = 7 // maximum number of columns as wide as their labels on a phone
)

// FormatValue formats a value for people.
func (c Chart) FormatValue(v int64) Words {
	switch c.Unit {
	case InUSD:
		return Data(USD(money.Amount(v)))
	case InMS:
		return FormatDuration(v)
	}
	return Data(Thousands(v))
}

// Sentence returns a sentence to show in place of a drawing with at most one column above zero. It returns an
// empty text for other charts.
func (c Chart) Sentence() Words {
	var only Words
	for i, bucket := range c.Buckets {
		switch sum := c.sum(i); {
		case sum == 0:
		case only != "":
			return ""
		default:
			only = Sayf("%s: %s.", bucket, c.FormatValue(sum))
		}
	}
	return cmp.Or(only, c.EmptyText)
}

// maxSum returns the sum of the highest column.
func (c Chart) maxSum() int64 {
	var highest int64
	for i := range c.Buckets {
		highest = max(highest, c.sum(i))
	}
	return highest
}

func (c Chart) sum(bucket int) (sum int64) {
	for _, s := range c.Series {
		sum = money.Plus(sum, s.Values[bucket])
	}
	return sum
}

// top returns the end of the scale: 1, 2 or 5 times a power of ten, and at least the highest sum.
func (c Chart) top() int64 {
	highest := c.maxSum()
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{1, 2, 5} {
			if unit > 1<<59 || step*unit >= highest {
				return max(step*unit, highest)
			}
		}
	}
}

// Scale returns the labels of the scale, from the end of the scale down to zero.
func (c Chart) Scale() []Words {
	top := c.top()
	half := c.FormatValue(top / 2)
	if top < 2 || c.Unit == InCount && top%2 == 1 {
		half = "" // a rounded label would be at the wrong place
	}
	return []Words{c.FormatValue(top), half, c.FormatValue(0)}
}

// AxisLabel is the label below a column.
type AxisLabel struct {
	X, Anchor string
	Text      Words
	Class     string // CSS class of a label hidden on narrow screens; if empty, the label is always shown
}

// Labels returns the labels of the axis. If there are few columns, each has a label. Otherwise only the first,
// the last and some others have labels. If there are more than wideColumns, the first label begins at the left
// edge, and the last label ends at the right edge, because labels are wider than columns.
func (c Chart) Labels() []AxisLabel {
	n := len(c.Buckets)
	columns := labeledColumns(n)
	axis := c.Axis
	if axis == nil {
		axis = c.Buckets
	}
	labels := make([]AxisLabel, len(columns))
	middle := 0 // index of the label nearest to the middle
	for i, column := range columns {
		labels[i] = AxisLabel{Text: axis[column], Anchor: "middle", X: coordinate(100*(float64(column)+0.5)/float64(n)) + "%"}
		if i > 0 && i < len(columns)-1 {
			labels[i].Class = "more"
			if middle == 0 || max(2*column, n)-min(2*column, n) < max(2*columns[middle], n)-min(2*columns[middle], n) {
				middle = i
			}
		}
	}
	if middle > 0 {
		labels[middle].Class = "mid"
	}
	if n > wideColumns {
		labels[0].X, labels[0].Anchor = "0%", "start"
		labels[len(labels)-1].X, labels[len(labels)-1].Anchor = "100%", "end"
	}
	return labels
}

// labeledColumns returns the indexes of the columns with a label, out of n columns: the first, the last, and
// columns at equal distances before the last. A column too near to the first gets no label.
func labeledColumns(n int) (columns []int) {
	step := max(1, (n-1+maxLabels-2)/(maxLabels-1))
	for column := n - 1; column >= step; column -= step {
		columns = append(columns, column)
	}
	if n > 0 {
		columns = append(columns, 0)
	}
	slices.Reverse(columns)
	return columns
}

// SeriesPath is one series as an SVG path, with its legend.
type SeriesPath struct {
	Class, Path string
	Name, Total Words
}

// Paths returns a path for each series, the bottom one first.
func (c Chart) Paths() []SeriesPath {
	top := float64(c.top())
	base := make([]int64, len(c.Buckets))
	paths := make([]SeriesPath, len(c.Series))
	columnWidth := float64(chartWidth) / float64(max(len(c.Buckets), 1))
	for n, s := range c.Series {
		var path strings.Builder
		var total int64
		for i, v := range s.Values {
			if v > 0 {
				height := float64(chartHeight) * float64(v) / top
				y := float64(chartHeight) * (1 - float64(base[i]+v)/top)
				path.WriteString("M" + coordinate(float64(i)*columnWidth+columnWidth*0.1) + " " + coordinate(y) +
					"h" + coordinate(columnWidth*0.8) + "v" + coordinate(height) + "h-" + coordinate(columnWidth*0.8) + "z")
			}
			base[i] += v
			total += v
		}
		class := "s" + strconv.Itoa(min(n+1, 7))
		if s.Rest {
			class = "s7"
		}
		paths[n] = SeriesPath{Class: class, Name: s.Name, Path: path.String()}
		if c.Unit != InMS { // times do not add up
			paths[n].Total = c.FormatValue(total)
		}
	}
	return paths
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// HoverArea is the area of a column. It shows the column's total to a pointer above it.
type HoverArea struct {
	X, Width string
	Text     Words
}

// HoverAreas returns the areas of all columns.
func (c Chart) HoverAreas() []HoverArea {
	columnWidth := float64(chartWidth) / float64(max(len(c.Buckets), 1))
	areas := make([]HoverArea, len(c.Buckets))
	for i, bucket := range c.Buckets {
		areas[i] = HoverArea{X: coordinate(float64(i) * columnWidth), Width: coordinate(columnWidth),
			Text: Sayf("%s: %s", bucket, c.FormatValue(c.sum(i)))}
	}
	return areas
}

// Table returns the figures of the chart.
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
		return Duration{v}
	}
	return Count{v}
}
