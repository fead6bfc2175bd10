package ui

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/money"
)

func TestFormats(t *testing.T) {
	t.Parallel()
	for amount, want := range map[money.Amount]string{
		0: "$0", 1: "$0.000000001", 875_000: "$0.000875", 1_234_567: "$0.001235", 9_999_999: "$0.01", 9_994_000: "$0.009994",
		10_000_000: "$0.01",
		14_999_999: "$0.015", 12_500_000: "$0.0125", 999_940_000: "$0.9999", 41_200_000_000: "$41.20", 1_234_567_890_000_000: "$1,234,567.89",
		-5_000_000_000: "-$5.00", -1: "-$0.000000001", money.Max: "$1,000,000,000.00", 999_999_999: "$1.00", math.MinInt64: "-$9,223,372,036.85",
	} {
		if got := USD(amount); fmt.Sprint(got) != want {
			t.Errorf("USD(%s) = %s, want %s", amount, got, want)
		}
	}
	for amount, want := range map[money.Amount]string{
		money.USD: "200 credits", money.Credit: "1 credit", -money.USD * 10: "-2,000 credits",
		money.Credit * 5 / 4: "1.3 credits", 0: "0 credits", 1: "< 0.1 credits",
	} {
		if got := Credits(amount); fmt.Sprint(got) != want {
			t.Errorf("Credits(%s) = %s, want %s", amount, got, want)
		}
	}
	for ms, want := range map[int64]string{0: "0 ms", 999: "999 ms", 1400: "1.4 s", 60_000: "1 min", 200_000: "3 min 20 s",
		7_200_000: "2 h", 3_900_000: "1 h 5 min"} {
		if got := FormatDuration(ms); fmt.Sprint(got) != want {
			t.Errorf("FormatDuration(%d) = %s, want %s", ms, got, want)
		}
	}
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "–"}, {0, 5, "0 %"}, {3, 812, "0.4 %"}, {1, 1_000_000, "< 0.1 %"}, {5, 5, "100 %"}} {
		if got := Percent(c.part, c.whole); got != c.want {
			t.Errorf("Percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
	if got := Thousands(-1234567); got != "-1,234,567" {
		t.Errorf("Thousands(-1234567) = %s, want -1,234,567", got)
	}
}

// TestCSV checks that values are exact, and that a spreadsheet takes no text for a formula.
func TestCSV(t *testing.T) {
	t.Parallel()
	table := DataTable{Columns: []Column{{Title: "a"}, {Title: "b"}, {Title: "c"}, {Title: "d"}},
		Rows: []DataRow{{Cells: []any{"=1+1", Money{Amount: -1}, Moment{1_800_000_000_000}, Badge{Label: `with "quotes", and`}}},
			{Cells: []any{Text{Text: "-x"}, Count{1234}, Moment{}, Ident{ID: "@x", Cut: true}}},
			{Cells: []any{"-0.5", "+1-1", "", ""}}}}
	var b bytes.Buffer
	if err := table.CSV(&b, true); err != nil {
		t.Fatal(err)
	}
	want := "a,b,c,d\n'=1+1,-0.000000001,2027-01-15T08:00:00Z,\"with \"\"quotes\"\", and\"\n'-x,1234,,'@x\n-0.5,'+1-1,,\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// TestChartsFit checks that the drawing is small and stays in its bounds for all values.
func TestChartsFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []int64
		scale  string
	}{
		{[]int64{0}, "1 – 0"}, {[]int64{1}, "1 – 0"}, {[]int64{3, 2}, "5 – 0"},
		{[]int64{10_000_000, 1}, "10,000,000 5,000,000 0"}, {[]int64{1 << 62}, ""},
	} {
		chart := Chart{Unit: InCount, Series: []ChartSeries{{Values: c.values}}}
		for range c.values {
			chart.Buckets = append(chart.Buckets, "x")
		}
		scale := strings.ReplaceAll(joinBy("%s %s", chart.Scale()).String(), "  ", " – ")
		if c.scale != "" && scale != c.scale {
			t.Errorf("%v has the scale %s, want %s", c.values, scale, c.scale)
		}
		if chart.top() < chart.maxSum() {
			t.Errorf("the scale of %v ends at %d, want at least %d", c.values, chart.top(), chart.maxSum())
		}
		for _, d := range chart.Paths() {
			if strings.Contains(d.Path, "-0.") || strings.Contains(d.Path, "NaN") || strings.Contains(d.Path, "Inf") {
				t.Errorf("the path of %v is %s, want numbers of at least 0", c.values, d.Path)
			}
		}
	}
	big := Chart{ID: "c", Title: "t", Unit: InUSD}
	for range 6 {
		big.Series = append(big.Series, ChartSeries{Name: "model"})
	}
	for i := range 60 {
		big.Buckets = append(big.Buckets, "3 May")
		for n := range big.Series {
			big.Series[n].Values = append(big.Series[n].Values, int64(i*n+1)*1_234_567)
		}
	}
	raw, err := newPages(`{{range .}}<path d="{{.Path}}"/>{{end}}`).RenderFragment("en", "kit", big.Paths())
	if err != nil || len(raw) > 15_000 {
		t.Errorf("a chart of 60 columns and 6 series has %d bytes, want at most 15,000; error %v", len(raw), err)
	}
}

// TestAxis checks that the first and the last column always have a label, and that labels do not
// overlap.
func TestAxis(t *testing.T) {
	t.Parallel()
	for n := range 120 {
		c := Chart{}
		for i := range n {
			c.Buckets = append(c.Buckets, Data(strconv.Itoa(i)))
		}
		labels := c.Labels()
		if n == 0 {
			if len(labels) > 0 {
				t.Errorf("a chart without columns has the labels %v, want none", labels)
			}
			continue
		}
		first, last := labels[0], labels[len(labels)-1]
		if first.Text.String() != "0" || last.Text.String() != strconv.Itoa(n-1) || first.Class+last.Class != "" || len(labels) > maxLabels ||
			len(labels) < min(n, maxLabels/2) {
			t.Errorf("%d columns: labels %v, want the first and the last, and at most %d", n, labels, maxLabels)
		}
		minDistances := map[string]float64{"": 0.5, "mid": 0.29, "more": 0.1} // shares of the width, where labels of the class are shown
		lastX := map[string]float64{}
		for i, l := range labels {
			x, err := strconv.ParseFloat(strings.TrimSuffix(l.X, "%"), 64)
			if err != nil || x < 0 || x > 100 {
				t.Errorf("%d columns: the label %v is outside the drawing, error %v", n, l, err)
			}
			if outer := i == 0 || i == len(labels)-1; (l.Anchor == "middle") != (n <= wideColumns || !outer) {
				t.Errorf("%d columns: the label %v has the wrong anchor", n, l)
			}
			for class, minDistance := range minDistances {
				if l.Class != "" && l.Class != class && class != "more" {
					continue
				}
				if previous, ok := lastX[class]; ok && n > wideColumns && x-previous < 100*minDistance {
					t.Errorf("%d columns: %v is only %f after the previous label", n, l, x-previous)
				}
				lastX[class] = x
			}
		}
	}
}

// TestAmountsOfAColumnAreAlike checks that every amount of a column has the decimals of the amount
// with the most decimals, and that no column changes another.
func TestAmountsOfAColumnAreAlike(t *testing.T) {
	t.Parallel()
	amounts := func(texts ...string) (all []money.Amount) {
		for _, text := range texts {
			a, err := money.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, a)
		}
		return all
	}
	for _, c := range []struct {
		amounts []money.Amount // the last is the foot
		exact   bool
		want    string
	}{
		{amounts("0.0000012", "0.03", "1200", "1200.0300012"), false, "$0.0000012 $0.0300000 $1,200.0000000 $1,200.0300012"},
		{amounts("0", "0", "0"), false, "$0 $0 $0"},
		{amounts("0", "0.000875", "0.000875"), false, "$0 $0.000875 $0.000875"},
		{amounts("5", "-0.0125", "4.9875"), false, "$5.0000 -$0.0125 $4.9875"},
		{amounts("41.2", "1200", "1241.2"), false, "$41.20 $1,200.00 $1,241.20"},
		{amounts("0.00123456", "2", "2.00123456"), false, "$0.001235 $2.000000 $2.001235"},
		{amounts("0.00123456", "2", "2.00123456"), true, "$0.00123456 $2.00000000 $2.00123456"},
		{amounts("1.005", "2", "3.005"), true, "$1.005 $2.000 $3.005"},
		{amounts("0.000000001", "0.1", "0.100000001"), false, "$0.000000001 $0.100000000 $0.100000001"},
	} {
		table := DataTable{Columns: []Column{{Title: "a"}, {Title: "b", Exact: c.exact}, {Title: "c"}}}
		var bars Bars
		for i, a := range c.amounts {
			cells := []any{Text{Text: "x"}, Money{Amount: a}, Money{Amount: 3_000_000_000}}
			if i == len(c.amounts)-1 {
				table.Foot = cells
			} else {
				table.Rows = append(table.Rows, DataRow{Cells: cells})
			}
			bars = append(bars, Bar{Label: "x", Value: Money{Amount: a}})
		}
		amount := regexp.MustCompile(`<span class="money" title="[^"]*">([^<]*)</span>`)
		shown := func(component any) (all []string) {
			for _, m := range amount.FindAllStringSubmatch(renderPage(t, Layout{}, component), -1) {
				if m[1] != "$3.00" {
					all = append(all, m[1])
				}
			}
			return all
		}
		if got := strings.Join(shown(table), " "); got != c.want {
			t.Errorf("%v: got %s, want %s", c.amounts, got, c.want)
		}
		if got := strings.Join(shown(bars), " "); !c.exact && got != c.want {
			t.Errorf("%v: got bars %s, want %s", c.amounts, got, c.want)
		}
		if m, ok := table.Rows[0].Cells[1].(Money); !ok || m.decimals != 0 {
			t.Errorf("%v: rendering has changed the table", c.amounts)
		}
	}
}
