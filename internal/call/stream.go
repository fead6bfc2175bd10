package call

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/line"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
)

// maxStart is the size of the beginning of an answer that is kept to find an error in it, in bytes.
const maxStart = 16 << 10

// progressInterval is the interval of progress reports to the ledger.
const progressInterval = 2 * time.Second

// errHoldLost ends a stream after the sweep took its hold. The rest of the stream could not be
// charged.
var errHoldLost = errors.New("this node was declared dead while it streamed")

// kindStream is an answer that passes on while it comes.
type kindStream struct {
	kind.Stream
	idle     time.Duration
	out      []byte // not yet sent
	end      bool   // out has the end of a complete answer
	bound    kind.Quantities
	reserved int64 // bytes taken from the budget

	mu      sync.Mutex // protects Stream, whose counts a progress report reads, and the fields below
	timer   *time.Timer
	stopped bool
}

// startReader keeps the beginning of an answer. Next holds the lock of the stream; a read gives it back
// while it waits, so that a stalled answer can be counted.
type startReader struct {
	io.Reader
	lock  *sync.Mutex
	start []byte
}

// Read implements io.Reader.
func (r *startReader) Read(p []byte) (int, error) {
	r.lock.Unlock()
	n, err := r.Reader.Read(p)
	r.lock.Lock()
	r.start = append(r.start, p[:min(n, maxStart-len(r.start))]...)
	return n, err
}

// openStream reads an answer up to its first bytes for the client.
func (x *kindFlow) openStream(on *line.Attempt, part kind.StreamedPart, answer *chatcall.Response) error {
	s := &kindStream{idle: on.Line.TimeoutsFor(x.Model).Idle, bound: part.Bound()}
	from := &startReader{Reader: answer.Body, lock: &s.mu}
	s.Stream = part.Stream(from, answer.ContentType, func(bytes int64) bool {
		if !x.engine.Answers.Reserve(bytes) {
			return false
		}
		s.reserved += bytes
		return true
	})
	x.stream = s
	for len(s.out) == 0 {
		f := x.next()
		if f == nil && s.end && len(s.out) == 0 {
			f = upstream.Fail(fault.EmptyCompletion, errors.New("an answer without a byte"))
		}
		if f != nil {
			x.engine.Answers.Release(s.reserved)
			x.stream = nil
			if f.Code == fault.EmptyCompletion {
				return f
			}
			return cmp.Or(on.Source().Classify(http.StatusOK, answer.ContentType, from.start, nil), f)
		}
	}
	return nil
}

// next reads more of the answer.
func (x *kindFlow) next() *upstream.Failure {
	s := x.stream
	s.mu.Lock()
	out, err := s.Next(s.out)
	s.mu.Unlock()
	s.out = out
	var f *upstream.Failure
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		s.end = true
		return nil
	case errors.Is(err, kind.ErrNoMemory):
		return OutOfMemory()
	case errors.Is(err, kind.ErrIncomplete):
		f = upstream.Fail(fault.UpstreamUnavailable, err)
	default:
		f = upstream.ConnectionFailure(x.Call.Ctx, err)
	}
	switch cause := context.Cause(x.Call.Ctx); {
	case errors.Is(cause, ErrTimeOver):
		f.Health = upstream.HealthNone // the line was still answering; the request took too long
	case errors.Is(cause, errHoldLost):
		f = upstream.Fail(fault.ServiceUnavailable, errHoldLost)
		f.Health = upstream.HealthNone
	}
	return f
}

// sendStream sends the answer while it comes, and settles it before its end.
func (x *kindFlow) sendStream() error {
	s := x.stream
	defer func() { x.engine.Answers.Release(s.reserved) }()
	x.Call.Limit(s.idle, "no more of the answer came")
	end := x.forward()
	x.stopProgress()
	return end()
}

// forward sends the answer up to its end and returns the function to end the request.
func (x *kindFlow) forward() (end func() error) {
	defer x.stopProgress() // of a panic
	s := x.stream
	for !s.end {
		x.Call.Pause() // a slow client is not the provider's fault
		if err := x.sendPiece(); err != nil {
			return x.abandon
		}
		x.Call.Restart(s.idle)
		f := x.next()
		switch {
		case x.Disconnected():
			return x.abandon
		case f != nil:
			return func() error { return x.breakOff(f) }
		}
	}
	return x.finish
}

// sendPiece sends what has come.
func (x *kindFlow) sendPiece() error {
	s := x.stream
	if len(s.out) == 0 {
		return nil
	}
	if x.Disconnected() {
		return x.ClientContext().Err()
	}
	if !x.Started {
		h := x.AnswerHeader()
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies in front pass the bytes on at once
		x.WriteHead(s.ContentType())
		s.mu.Lock()
		s.timer = time.AfterFunc(progressInterval, x.reportProgress)
		s.mu.Unlock()
	}
	if err := x.Write(s.out); err != nil {
		return err
	}
	s.out = s.out[:0]
	return x.Flush()
}

// reportProgress records the charge so far at the hold, in case this node dies. If the hold is lost, it
// cancels the call.
func (x *kindFlow) reportProgress() {
	s := x.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return
	}
	if x.HoldLost() {
		x.Call.Cancel(errHoldLost)
		return
	}
	x.count(false)
	tokens, quantity := x.counts(x.Model.Measure())
	x.Progress(ledger.Progress{Cost: x.Model.UnitCost(x.used, x.Factor), Tokens: tokens, Quantity: quantity, Line: x.Target.Line.ID})
	s.timer.Reset(progressInterval)
}

// stopProgress ends the reports. No report is running when it returns.
func (x *kindFlow) stopProgress() {
	s := x.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// count sets the counts of the answer so far.
func (x *kindFlow) count(complete bool) {
	s := x.stream
	x.used, x.providers, x.gateways = kind.Believed(s.Reported(), s.bound,
		func() kind.Quantities { return s.Count(&x.engine.Counter, complete) })
}

// finish settles a complete answer and sends its end.
func (x *kindFlow) finish() error {
	if x.Disconnected() {
		return x.abandon()
	}
	x.Call.Close()
	x.count(true)
	if !x.Started {
		if err := x.SettleFirst(x.bill()); err != nil {
			return err
		}
	} else if err := x.Settle(x.bill()); err != nil {
		x.sendFailure(fault.New(fault.ServiceUnavailable,
			"The end of the answer was lost to a temporary problem of the service. What was produced may be charged; please try again.").WithCause(
			err))
		return nil
	}
	_ = x.sendPiece() // settled: it stays charged when the client is gone
	return nil
}

// breakOff ends an answer after a failure. Its delivered part is charged.
func (x *kindFlow) breakOff(f *upstream.Failure) error {
	x.Target.RecordBreak(f)
	x.Call.Close()
	x.RecordFailure(f)
	x.Span.Fail(string(f.Code))
	_ = x.sendPiece()
	x.count(false)
	b := x.bill()
	b.Code = f.Code
	_ = x.Settle(b) // logged; the ledger charges it later
	x.engine.Log.Info("request failed", "request", x.Request, "endpoint", x.Endpoint, "account", x.Account, "key", x.Key,
		"model", x.Model.ID, "line", x.LastLine(), "code", string(f.Code), "cause", f.Cause, "streamed", true, x.Span.Log())
	x.sendFailure(f.FaultInStream())
	return nil
}

// sendFailure sends an event about a failure, or cuts the connection if the answer has no events.
func (x *kindFlow) sendFailure(f *fault.Error) {
	s := x.stream
	if s.out = s.Failure(s.out[:0], f); s.out == nil {
		panic(http.ErrAbortHandler)
	}
	_ = x.sendPiece() // the client may be gone; no other reader needs the error
}

// abandon ends an answer after its client disconnected. What was delivered is charged.
func (x *kindFlow) abandon() error {
	x.Call.Close()
	if !x.Started {
		return x.Fail(fault.New(fault.ClientClosed, "The client disconnected."))
	}
	x.count(false)
	b := x.bill()
	b.Code = fault.ClientClosed
	_ = x.Settle(b) // logged; charged later
	panic(http.ErrAbortHandler)
}
