package show

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"tollgate/internal/ledger/requestlog"
)

// TestLatency checks that the chart shows only answers, the oldest first, in at most thirty
// columns, and that each column shows a real answer.
func TestLatency(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC).UnixMilli()
	answer := func(minute, first, duration int64) requestlog.Receipt {
		return requestlog.Receipt{Status: 200, CreatedMS: noon + minute*60_000, FirstByteMS: first, DurationMS: duration}
	}
	refused, job := answer(9, 0, 2), answer(9, 0, 90_000)
	refused.Status, job.Job = 402, "job_1"

	if got := Latency([]requestlog.Receipt{refused, job}); got != nil {
		t.Errorf("Latency without answers = %+v, want nil", got)
	}
	few := Latency([]requestlog.Receipt{job, answer(5, 300, 900), refused, answer(1, 0, 400)})
	if few == nil || few.Title.String() != "How long the last 2 answers took (UTC)" || fmt.Sprint(few.Axis) != "[12:01 12:05]" ||
		!slices.Equal(few.Series[0].Values, []int64{0, 300}) || !slices.Equal(few.Series[1].Values, []int64{400, 600}) {
		t.Errorf("the chart of two answers at 12:01 and 12:05 is %+v", few)
	}
	single := Latency([]requestlog.Receipt{answer(0, 7, 5)})
	if single.Title != "How long the last answer took (UTC)" || single.Series[0].Values[0] != 5 || single.Series[1].Values[0] != 0 {
		t.Errorf("the chart of an answer of 5 ms with the first byte at 7 ms is %+v, want 5 and 0 ms", single)
	}
	if Latency([]requestlog.Receipt{answer(0, 0, 0)}) == nil {
		t.Error("Latency of an answer within a millisecond = nil, want a chart")
	}
	var newest []requestlog.Receipt
	for i := range int64(100) { // over four days
		newest = append(newest, answer(-60*i, 100, 1000+i))
	}
	many := Latency(newest)
	if many.Title.String() != "How long the last 100 answers took, median of each 4 (UTC)" || len(many.Buckets) != 25 ||
		many.Axis[0].String() != "22 Nov" || many.Axis[24].String() != "26 Nov" || many.Buckets[24].String() != "2026-11-26 09:00:00 UTC" {
		t.Errorf("the chart of 100 answers has the title %q and the columns %v, want 25 columns", many.Title, many.Buckets)
	}
	if last := many.Series[0].Values[24] + many.Series[1].Values[24]; last != 1002 {
		t.Errorf("the last column shows %d ms, want the median 1002", last)
	}
}
