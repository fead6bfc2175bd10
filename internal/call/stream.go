package call

import (
	"cmp"
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

// kindStream is an answer that passes on while it comes.
type kindStream struct {
	kind.Stream
	idle     time.Duration
	out      []byte // not yet sent
	end      bool   // out has the end of a complete answer
	bound    kind.Quantities
	reserved int64 // bytes taken from the budget

	progress ProgressReports // its lock protects Stream
}

// startReader keeps the beginning of an answer. Next holds the lock of the stream; a read gives it back
// while it waits, so that a stalled answer can be counted.
type startReader struct {
	io.Reader
	lock  sync.Locker
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
	from := &startReader{Reader: answer.Body, lock: &s.progress}
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
	s.progress.Lock()
	out, err := s.Next(s.out)
	s.progress.Unlock()
	s.out = out
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		s.end = true
		return nil
	case errors.Is(err, kind.ErrNoMemory):
		return OutOfMemory()
	case errors.Is(err, kind.ErrIncomplete):
		return x.Interrupted(upstream.Fail(fault.UpstreamUnavailable, err))
	}
	return x.Interrupted(upstream.ConnectionFailure(x.Call.Ctx, err))
}

// sendStream sends the answer while it comes, and settles it before its end.
func (x *kindFlow) sendStream() error {
	s := x.stream
	defer func() { x.engine.Answers.Release(s.reserved) }()
	x.Call.Limit(s.idle, "no more of the answer came")
	defer s.progress.Stop() // of a panic
	end := x.forward()
	s.progress.Stop()
	return end()
}

// forward sends the answer up to its end and returns the function to end the request.
func (x *kindFlow) forward() (end func() error) {
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

// sendPiece sends the bytes that are ready.
func (x *kindFlow) sendPiece() error {
	s := x.stream
	if len(s.out) == 0 {
		return nil
	}
	if x.Disconnected() {
		return x.ClientContext().Err()
	}
	if !x.Started {
		x.DisableBuffering()
		x.WriteHead(s.ContentType())
		s.progress.Start(&x.Flow, x.produced)
	}
	if err := x.Write(s.out); err != nil {
		return err
	}
	s.out = s.out[:0]
	return x.Flush()
}

// produced returns the counts and the charge so far.
func (x *kindFlow) produced() ledger.Progress {
	x.count(false)
	tokens, quantity := x.counts(x.Model.Measure())
	return ledger.Progress{Cost: x.Model.UnitCost(x.used, x.Factor), Tokens: tokens, Quantity: quantity, Line: x.Target.Line.ID}
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
		x.sendFailure(LostEnd(err))
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
	x.LogBroken(f)
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
