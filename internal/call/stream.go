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
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/kind"
)

// maxStart is the size of the beginning of an answer that is kept to find an error in it, in bytes.
const maxStart = 16 << 10

// kindStream is an answer that is forwarded as it arrives.
type kindStream struct {
	*kindAttempt
	kind.Stream
	idle  time.Duration
	out   []byte // not yet sent
	end   bool   // out has the end of a complete answer
	bound kind.Quantities

	progress ProgressReports // its lock protects Stream
}

// startReader keeps the beginning of an answer. The caller of Next holds the stream's lock. Read releases the
// lock while it waits for data, so that a stalled answer can be counted.
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
func (a *kindAttempt) openStream(part kind.StreamedPart, answer *chatcall.Response) (*kindStream, error) {
	s := &kindStream{kindAttempt: a, idle: a.on.Line.TimeoutsFor(a.Model).Idle, bound: part.Bound()}
	from := &startReader{Reader: answer.Body, lock: &s.progress}
	s.Stream = part.Stream(from, answer.ContentType, a.Reserve)
	for len(s.out) == 0 {
		f := s.next()
		if f == nil && s.end && len(s.out) == 0 {
			f = upstream.Fail(fault.EmptyCompletion, errors.New("an answer without a byte"))
		}
		if f != nil {
			if f.Code == fault.EmptyCompletion {
				return nil, f
			}
			return nil, cmp.Or(a.on.Source().Classify(http.StatusOK, answer.ContentType, from.start, nil), f)
		}
	}
	return s, nil
}

// next reads more of the answer.
func (s *kindStream) next() *upstream.Failure {
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
		return upstream.OutOfMemory()
	case errors.Is(err, kind.ErrIncomplete):
		return s.Interrupted(upstream.Fail(fault.UpstreamUnavailable, err))
	}
	return s.Interrupted(upstream.ConnectionFailure(s.call.Ctx, err))
}

// send sends the answer as it arrives, and settles it before its end.
func (s *kindStream) send() error {
	s.call.Limit(s.idle, "no more of the answer came")
	defer s.progress.Stop() // in case of a panic
	end := s.forward()
	s.progress.Stop()
	return end()
}

// forward sends the answer up to its end and returns the function to end the request.
func (s *kindStream) forward() (end func() error) {
	for !s.end {
		s.call.Pause() // a slow client is not the provider's fault
		if err := s.sendPiece(); err != nil {
			return s.abandon
		}
		s.call.Restart(s.idle)
		f := s.next()
		switch {
		case s.Disconnected():
			return s.abandon
		case f != nil:
			return func() error { return s.breakOff(f) }
		}
	}
	return s.finish
}

// sendPiece sends the bytes that are ready.
func (s *kindStream) sendPiece() error {
	if len(s.out) == 0 {
		return nil
	}
	if s.Disconnected() {
		return s.ClientContext().Err()
	}
	if !s.Started {
		s.DisableBuffering()
		s.WriteHead(s.ContentType())
		s.progress.Start(&s.Flow, s.produced)
	}
	if err := s.Write(s.out); err != nil {
		return err
	}
	s.out = s.out[:0]
	return s.Flush()
}

// produced returns the counts and the charge so far.
func (s *kindStream) produced() ledger.Progress {
	used := s.count(false).used
	tokens, quantity := receiptCounts(s.Model.Measure(), used)
	return ledger.Progress{Cost: s.Model.UnitCost(used, s.Factor), Tokens: tokens, Quantity: quantity, Line: s.on.Line.ID}
}

// count returns the counts of the answer so far.
func (s *kindStream) count(complete bool) kindCounts {
	c := kindCounts{used: kind.Quantities{}}
	c.add(s.Reported(), s.bound, func() kind.Quantities { return s.Count(&s.engine.Counter, complete) })
	return c
}

// finish settles a complete answer and sends its end.
func (s *kindStream) finish() error {
	if s.Disconnected() {
		return s.abandon()
	}
	s.call.Close()
	bill := s.bill(s.count(true))
	if !s.Started {
		if err := s.SettleFirst(bill); err != nil {
			return err
		}
	} else if err := s.Settle(bill); err != nil {
		s.sendFailure(LostEnd(err))
		return nil
	}
	_ = s.sendPiece() // the answer is settled: it stays charged if the client is gone
	return nil
}

// breakOff ends an answer after a failure. Its delivered part is charged.
func (s *kindStream) breakOff(f *upstream.Failure) error {
	s.on.RecordBreak(f)
	s.call.Close()
	s.RecordFailure(f)
	s.Span.Fail(string(f.Code))
	_ = s.sendPiece()
	bill := s.bill(s.count(false))
	bill.Code = f.Code
	_ = s.Settle(bill) // logged; the ledger charges it later
	s.LogBroken(f)
	s.sendFailure(f.FaultInStream())
	return nil
}

// sendFailure sends an event about a failure, or cuts the connection if the answer has no events.
func (s *kindStream) sendFailure(f *fault.Error) {
	if s.out = s.Failure(s.out[:0], f); s.out == nil {
		panic(http.ErrAbortHandler)
	}
	_ = s.sendPiece() // the client may be gone; no other reader needs the error
}

// abandon ends an answer after its client disconnected. The delivered part is charged.
func (s *kindStream) abandon() error {
	s.call.Close()
	if !s.Started {
		return s.Fail(fault.New(fault.ClientClosed, "The client disconnected."))
	}
	bill := s.bill(s.count(false))
	bill.Code = fault.ClientClosed
	_ = s.Settle(bill) // logged; charged later
	panic(http.ErrAbortHandler)
}
