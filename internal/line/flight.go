package line

import (
	"context"
	"io"
	"sync/atomic"
	"time"

	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// flight is one attempt on a line: the adapter that makes its call, and the
// body of its answer. It ends when the attempt failed or the body is closed;
// until then the line counts as busy and its slot is taken.
type flight struct {
	lines    *Lines
	entry    *routingEntry
	form     wire.Form
	asked    asked
	halfOpen bool
	slot     bool

	body  io.ReadCloser // nil while there is no answer
	ended atomic.Bool

	number  uint64 // of its sample in the stats
	counted bool   // it began with an answer
	broken  atomic.Bool
}

// Chat implements upstream.Adapter.
func (f *flight) Chat(ctx context.Context, call upstream.Call) (*upstream.Answer, error) {
	answer, err := f.entry.adapter.Chat(ctx, call)
	if err != nil {
		return nil, err
	}
	f.body = answer.Body
	answer.Body = f
	return answer, nil
}

// Read implements io.Reader for the answer's body.
func (f *flight) Read(p []byte) (int, error) { return f.body.Read(p) }

// Close implements io.Closer for the answer's body and ends the flight.
func (f *flight) Close() error {
	err := f.body.Close()
	f.end()
	return err
}

// begin makes the line busy.
func (f *flight) begin() {
	f.entry.stats.inFlight.Add(1)
	f.entry.stats.metrics.inFlight.Inc()
}

// end gives back what the flight took, once.
func (f *flight) end() {
	if f.ended.Swap(true) {
		return
	}
	t := f.entry.stats
	t.inFlight.Add(-1)
	t.metrics.inFlight.Dec()
	if f.halfOpen {
		t.endHalfOpen()
	}
	if f.slot {
		f.lines.slots.Give(f.entry.line.ID)
	}
}

// answered records that the answer began.
func (f *flight) answered(now time.Time, firstByte time.Duration) {
	n, changes := f.entry.stats.answered(now, f.asked, firstByte)
	f.number, f.counted = n, true
	f.entry.stats.metrics.answered(firstByte)
	f.lines.tell(f.entry.line.ID, changes)
}

// failed records that the attempt failed.
func (f *flight) failed(now time.Time, failure *upstream.Failure) {
	t := f.entry.stats
	t.metrics.failed(failure)
	f.lines.tell(f.entry.line.ID, t.failed(now, f.asked, failure))
	f.lines.doubt(failure)
}

// broke turns the recorded answer into a failure, once.
func (f *flight) broke(failure *upstream.Failure) {
	if failure.Health == upstream.HealthNone || !f.counted || f.broken.Swap(true) {
		return
	}
	t := f.entry.stats
	t.metrics.broke(failure)
	f.lines.tell(f.entry.line.ID, t.broke(f.lines.now(), f.asked, f.number, failure))
	f.lines.doubt(failure)
}
