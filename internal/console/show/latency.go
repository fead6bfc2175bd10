package show

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"tollgate/internal/console/ui"
	"tollgate/internal/ledger/requestlog"
)

// latencyColumns is the maximum number of columns in the chart of latency.
const latencyColumns = 30

// Latency returns the chart of the durations of answers. receipts must have the newest first. A column is one
// answer, or the median of several consecutive answers. Only receipts with status 200 count. Jobs do not count,
// because jobs wait. Latency returns nil if there are no answers.
func Latency(receipts []requestlog.Receipt) *ui.Chart {
	var answers []requestlog.Receipt
	for _, r := range slices.Backward(receipts) {
		if r.Job == "" && r.Status == http.StatusOK {
			answers = append(answers, r)
		}
	}
	if len(answers) == 0 {
		return nil
	}
	n := len(answers)
	perColumn := (n + latencyColumns - 1) / latencyColumns
	title := ui.Sayf("How long the last %s answers took (UTC)", n)
	if n == 1 {
		title = "How long the last answer took (UTC)"
	}
	if perColumn > 1 {
		title = ui.Sayf("How long the last %s answers took, median of each %s (UTC)", n, ui.Thousands(int64(perColumn)))
	}
	c := ui.Chart{ID: "latency", Title: title, Unit: ui.InMS, EmptyText: "Less than a millisecond."}
	oneDay := dayOf(answers[0]).Equal(dayOf(answers[n-1]))
	first, rest := ui.ChartSeries{Name: "Until the first byte"}, ui.ChartSeries{Name: "Until the end"}
	for chunk := range slices.Chunk(answers, perColumn) {
		created := chunk[0].CreatedMS
		label := ui.AxisDay(dayOf(chunk[0]))
		if oneDay {
			label = ui.Data(ui.AxisClock(created))
		}
		c.Buckets, c.Axis = append(c.Buckets, ui.UTC(created)), append(c.Axis, label)
		slices.SortFunc(chunk, func(a, b requestlog.Receipt) int { return cmp.Compare(a.DurationMS, b.DurationMS) })
		middle := chunk[len(chunk)/2]
		firstByte := min(middle.FirstByteMS, middle.DurationMS)
		first.Values, rest.Values = append(first.Values, firstByte), append(rest.Values, middle.DurationMS-firstByte)
	}
	c.Series = []ui.ChartSeries{first, rest}
	return &c
}

func dayOf(r requestlog.Receipt) time.Time {
	return time.UnixMilli(r.CreatedMS).UTC().Truncate(24 * time.Hour)
}
