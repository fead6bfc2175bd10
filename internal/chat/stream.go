package chat

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tollgate/internal/call"
	"tollgate/internal/fault"
	"tollgate/internal/ledger"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire"
	"tollgate/internal/wire/gemini"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/responses"
	"tollgate/internal/wire/sse"
)

const (
	// maxEvent is the longest event of a stream.
	maxEvent = 8 << 20
	// maxBuffered bounds the bytes held before the first token and after the finish.
	maxBuffered = 16 << 20
	// packet is the size of one write of buffered events. With its framing it fits the server's
	// buffer for a connection, so that it is sent in one system call and no event is split. The
	// first write shares the buffer with the header.
	packet      = 4<<10 - 64
	firstPacket = 3 << 10
	// sentence is the length of text needed to detect an error sentence.
	maxSentence = 300
	// finishWait bounds the wait for the rest of a finished stream.
	finishWait = 10 * time.Second
)

// errNotFinished is the cause if a stream ends, or sends [DONE], before all of its choices have
// finished.
var errNotFinished = errors.New("stream ended before it was finished")

// stream is a streamed answer.
type stream struct {
	contentType string
	idle        time.Duration
	reader      *sse.Reader
	meter       wire.Meter
	writer      wire.Writer
	recorder    *responses.Recorder // of an answer to store, or nil

	out          []byte    // edited events not yet sent
	reserved     int       // how much of out's capacity is taken from the budget
	heldFrom     int       // offset in out of the bytes held for the settlement; -1 before the finish
	hasToken     bool      // a token came
	ended        bool      // the provider's stream has ended
	restDeadline time.Time // deadline of the events after the finish
	progress     call.ProgressReports
}

// openStream reads a stream up to its first token and checks the beginning.
func (x *chatRequest) openStream(answer *chatcall.Response, idle time.Duration) (*stream, error) {
	s := &stream{
		contentType: answer.ContentType, idle: idle, heldFrom: -1,
		reader: sse.NewReader(answer.Body, maxEvent),
	}
	s.reader.Reserve = x.reserve
	s.meter, s.writer = x.pair.Events()
	if own, ok := x.Body.(*gemini.Request); ok && own.ArrayStream() {
		s.contentType = "application/json"
	}
	if x.Store != nil {
		s.recorder = responses.NewRecorder(s.writer, x.reserve)
		s.writer = s.recorder
	}
	f := x.beginning(s)
	if f == nil {
		return s, nil
	}
	f.Tokens = x.usedTokens(s)
	x.releaseMemory()
	return nil, f
}

// beginning reads the beginning of a stream. It returns nil if the stream is good.
func (x *chatRequest) beginning(s *stream) *upstream.Failure {
	for {
		more, f := x.next(s)
		switch {
		case f != nil:
			return f
		case !more || s.heldFrom >= 0:
			return x.checkEnded(s)
		case len(s.out) > maxBuffered:
			return upstream.Fail(fault.UpstreamUnavailable, errors.New("too much came before the first token"))
		case s.hasToken && len(x.Target.Line.ErrorSentences) == 0:
			return nil
		case s.hasToken && (len(s.meter.Text()) >= maxSentence || bytes.IndexByte(s.meter.Text(), '\n') >= 0):
			return x.checkSentence(s)
		}
	}
}

// checkEnded checks a stream that has ended, or finished its last choice, before any event was
// sent.
func (x *chatRequest) checkEnded(s *stream) *upstream.Failure {
	switch {
	case !s.meter.Complete():
		return upstream.Fail(fault.UpstreamConnectionError, errNotFinished)
	case s.hasToken:
		return x.checkSentence(s)
	case x.passesEmpty(s.meter.Filtered(), s.meter.Limited()):
		return nil
	case s.meter.Filtered():
		return upstream.Fail(fault.ContentFilter, errors.New("empty stream, ended by the content filter"))
	case s.meter.Limited():
		return nil // ends normally with finish_reason length
	}
	return upstream.Fail(fault.EmptyCompletion, errors.New("stream without content"))
}

func (x *chatRequest) checkSentence(s *stream) *upstream.Failure {
	if text := s.meter.Text(); x.Target.Line.IsErrorSentence(string(text)) {
		return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", text))
	}
	return nil
}

// next reads one event and adds the client's version to out. It returns false at the end of the
// stream.
func (x *chatRequest) next(s *stream) (more bool, _ *upstream.Failure) {
	e, err := s.reader.Next()
	s.progress.Lock()
	defer s.progress.Unlock()
	switch {
	case s.reader.Ended():
		s.ended = true
		return false, nil
	case errors.Is(err, sse.ErrTooLarge), errors.Is(err, rawjson.ErrShape):
		return false, upstream.Fail(fault.UpstreamUnavailable, err)
	case errors.Is(err, sse.ErrNoRoom):
		return false, call.OutOfMemory()
	case errors.Is(err, sse.ErrTruncated):
		return false, upstream.Fail(fault.UpstreamConnectionError, err)
	case err != nil:
		return false, upstream.ConnectionFailure(x.Call.Ctx, err)
	}
	f, err := s.meter.Read(e)
	switch {
	case err != nil:
		return false, call.Malformed("text/event-stream", e.Data, err)
	case f.Err != nil:
		return false, reported(x.Target, f.Err)
	}
	if !s.hasToken {
		x.traceNames(e.Data)
	}
	if f.Finish {
		x.traceFinishes(e.Data)
	}
	s.hasToken = s.hasToken || f.Token
	if f.Finished && s.heldFrom < 0 {
		s.heldFrom = len(s.out)
	}
	switch {
	case e.Data == nil && !s.hasToken: // a comment before the answer
	case e.Data != nil && len(e.Data) == 0: // a keep-alive; clients would parse it as broken JSON
	default:
		s.out = s.writer.Append(s.out, e, f)
		if n := cap(s.out); n > call.UnbudgetedBytes && n > s.reserved {
			if !x.reserve(int64(n - s.reserved)) {
				return false, call.OutOfMemory()
			}
			s.reserved = n
		}
	}
	s.ended = f.Done
	return !f.Done, nil
}

// sendStream sends a stream as it arrives, and settles it before its end.
func (x *chatRequest) sendStream() error {
	x.Call.Limit(x.stream.idle, "no more of the stream came")
	defer x.stream.progress.Stop() // of a panic
	end := x.forwardEvents()
	x.stream.progress.Stop()
	return end()
}

// forwardEvents sends a stream as it arrives, and returns the function to end it.
func (x *chatRequest) forwardEvents() (end func() error) {
	s := x.stream
	for {
		before := len(s.out)
		wait := !s.reader.Buffered()
		if wait {
			x.Call.Pause() // a slow client is not the provider's fault
			if err := x.send(before); err != nil {
				return x.abandon
			}
			before = len(s.out)
			x.Call.Restart(x.eventTimeout())
		}
		more, f := x.next(s)
		if f == nil && len(s.out) > maxBuffered {
			f = upstream.Fail(fault.UpstreamUnavailable, errors.New("too much came at once, or after the finish"))
		}
		switch {
		case f != nil:
			return func() error { return x.interrupted(f) }
		case !more:
			return x.finish
		case !wait && len(s.out) > x.packet():
			x.Call.Pause()
			if err := x.send(before); err != nil {
				return x.abandon
			}
		}
	}
}

// finish ends a stream after the end of the provider's stream.
func (x *chatRequest) finish() error {
	switch {
	case x.Disconnected():
		return x.abandon()
	case !x.stream.meter.Complete():
		return x.endBroken(upstream.Fail(fault.UpstreamConnectionError, errNotFinished))
	}
	return x.complete()
}

// interrupted ends a stream after a failure. If only events after the finish are missing, the
// answer is complete.
func (x *chatRequest) interrupted(f *upstream.Failure) error {
	f = x.Interrupted(f)
	restLost := f.Rejection == nil && (f.Code == fault.UpstreamTimeout || f.Code == fault.UpstreamConnectionError)
	switch {
	case x.Disconnected():
		return x.abandon()
	case restLost && x.stream.heldFrom >= 0:
		return x.complete()
	}
	return x.endBroken(f)
}

// eventTimeout returns the time limit for the next event. All events after the finish share one limit,
// however many keep-alives the provider sends.
func (x *chatRequest) eventTimeout() time.Duration {
	s := x.stream
	if s.heldFrom < 0 {
		return s.idle
	}
	now := x.Now()
	if s.restDeadline.IsZero() {
		s.restDeadline = now.Add(min(s.idle, finishWait))
	}
	return max(0, s.restDeadline.Sub(now))
}

// packet returns the size of one write.
func (x *chatRequest) packet() int {
	if x.Started {
		return packet
	}
	return firstPacket
}

// send writes the first ready bytes of out in one write, except for bytes held for the settlement.
// ready must be the end of an event.
func (x *chatRequest) send(ready int) error {
	s := x.stream
	if s.heldFrom >= 0 {
		ready = min(ready, s.heldFrom)
	}
	if ready == 0 {
		return nil
	}
	if x.Disconnected() {
		return x.ClientContext().Err()
	}
	if !x.Started {
		x.DisableBuffering()
		x.begin(s.contentType)
		s.progress.Start(&x.Flow, x.produced)
	}
	if err := x.Write(s.out[:ready]); err != nil {
		return err
	}
	s.out = append(s.out[:0], s.out[ready:]...)
	if s.heldFrom >= 0 {
		s.heldFrom -= ready
	}
	return x.Flush()
}

// produced returns an estimate of the usage so far, and its charge.
func (x *chatRequest) produced() ledger.Progress {
	u := x.estimatedUsage()
	return ledger.Progress{Cost: x.Snapshot.Cost(x.Target.Line, x.Model, u, x.choice), Tokens: tokens(u), Line: x.Target.Line.ID}
}

// complete settles a complete stream and sends its end.
func (x *chatRequest) complete() error {
	s := x.stream
	if x.Disconnected() {
		return x.abandon()
	}
	x.Call.Close()
	u := billable(x.currentUsage(), s.meter.Filtered(), s.hasToken)
	s.out = s.writer.End(s.out, u)
	if s.recorder != nil {
		x.storeAnswer(s.recorder.Answer())
	}
	if !x.Started {
		if err := x.SettleFirst(x.bill(u, "")); err != nil {
			return err
		}
	} else if err := x.Settle(x.bill(u, "")); err != nil {
		x.sendError(call.LostEnd(err))
		panic(http.ErrAbortHandler)
	}
	s.heldFrom = -1
	_ = x.send(len(s.out)) // settled: it stays charged when the client is gone
	return nil
}

// endBroken ends a broken stream. Without a token it is an error answer; otherwise the produced part
// is charged and the last event describes the error. Tokens received in one piece with the failure
// are sent first: no other line is tried any more, and the client's answer and charge must not
// depend on the network's segmentation.
func (x *chatRequest) endBroken(f *upstream.Failure) error {
	x.Target.RecordBreak(f)
	if !x.Started && x.stream.hasToken {
		if err := x.send(len(x.stream.out)); err != nil {
			return x.abandon()
		}
	}
	x.Call.Close()
	x.RecordFailure(f)
	x.Span.Fail(string(f.Code))
	if !x.Started {
		x.recordWaste(x.usedTokens(x.stream))
		return x.Fail(f.Fault())
	}
	_ = x.Settle(x.bill(x.currentUsage(), f.Code)) // logged; the ledger charges it later
	x.LogBroken(f)
	x.sendError(f.FaultInStream())
	return nil
}

// sendError sends the ready events and then an error event.
func (x *chatRequest) sendError(f *fault.Error) {
	s := x.stream
	if s.heldFrom >= 0 {
		s.out, s.heldFrom = s.out[:s.heldFrom], -1
	}
	s.out = s.writer.Fail(s.out, f)
	_ = x.send(len(s.out)) // the client may be gone; no other reader needs the error
}

// abandon ends a stream after its client disconnected. It cancels the upstream call and charges the
// produced part if any byte was written to the connection.
func (x *chatRequest) abandon() error {
	x.Call.Close()
	if !x.Started {
		x.recordWaste(x.usedTokens(x.stream))
		return x.Fail(fault.New(fault.ClientClosed, "The client disconnected."))
	}
	_ = x.Settle(x.bill(x.currentUsage(), fault.ClientClosed)) // logged; charged later
	panic(http.ErrAbortHandler)
}
