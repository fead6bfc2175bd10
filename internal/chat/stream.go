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
	// maxSentence is the length of text needed to detect an error sentence, in bytes.
	maxSentence = 300
	// finishWait bounds the wait for the rest of a finished stream.
	finishWait = 10 * time.Second
)

// errNotFinished is the cause if a stream ends, or sends [DONE], before all of its choices have
// finished.
var errNotFinished = errors.New("stream ended before it was finished")

// stream is a streamed answer.
type stream struct {
	*attempt
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
func (a *attempt) openStream(got *chatcall.Response, idle time.Duration) (*stream, error) {
	s := &stream{
		attempt: a, contentType: got.ContentType, idle: idle, heldFrom: -1,
		reader: sse.NewReader(got.Body, maxEvent),
	}
	s.reader.Reserve = a.Reserve
	s.meter, s.writer = a.pair.Events()
	if own, ok := a.Body.(*gemini.Request); ok && own.ArrayStream() {
		s.contentType = "application/json"
	}
	if a.Store != nil {
		s.recorder = responses.NewRecorder(s.writer, a.Reserve)
		s.writer = s.recorder
	}
	if f := s.beginning(); f != nil {
		f.Tokens = s.usedTokens()
		return nil, f
	}
	return s, nil
}

// beginning reads the beginning of a stream. It returns nil if the stream is good.
func (s *stream) beginning() *upstream.Failure {
	for {
		more, f := s.next()
		switch {
		case f != nil:
			return f
		case !more || s.heldFrom >= 0:
			return s.checkEnded()
		case len(s.out) > maxBuffered:
			return upstream.Fail(fault.UpstreamUnavailable, errors.New("too much came before the first token"))
		case s.hasToken && len(s.on.Line.ErrorSentences) == 0:
			return nil
		case s.hasToken && (len(s.meter.Text()) >= maxSentence || bytes.IndexByte(s.meter.Text(), '\n') >= 0):
			return s.checkSentence()
		}
	}
}

// checkEnded checks a stream that has ended, or finished its last choice, before any event was
// sent.
func (s *stream) checkEnded() *upstream.Failure {
	switch {
	case !s.meter.Complete():
		return upstream.Fail(fault.UpstreamConnectionError, errNotFinished)
	case s.hasToken:
		return s.checkSentence()
	case s.passesEmpty(s.meter.Filtered(), s.meter.Limited()):
		return nil
	case s.meter.Filtered():
		return upstream.Fail(fault.ContentFilter, errors.New("empty stream, ended by the content filter"))
	case s.meter.Limited():
		return nil // ends normally with finish_reason length
	}
	return upstream.Fail(fault.EmptyCompletion, errors.New("stream without content"))
}

func (s *stream) checkSentence() *upstream.Failure {
	if text := s.meter.Text(); s.on.Line.IsErrorSentence(string(text)) {
		return upstream.Fail(fault.UpstreamError, fmt.Errorf("error sentence: %.200q", text))
	}
	return nil
}

// next reads one event and adds the client's version to out. It returns false at the end of the
// stream.
func (s *stream) next() (more bool, _ *upstream.Failure) {
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
		return false, upstream.OutOfMemory()
	case errors.Is(err, sse.ErrTruncated):
		return false, upstream.Fail(fault.UpstreamConnectionError, err)
	case err != nil:
		return false, upstream.ConnectionFailure(s.call.Ctx, err)
	}
	f, err := s.meter.Read(e)
	switch {
	case err != nil:
		return false, call.Malformed("text/event-stream", e.Data, err)
	case f.Err != nil:
		return false, s.reportedFailure(f.Err)
	}
	if !s.hasToken {
		s.traceNames(e.Data)
	}
	if f.Finish {
		s.traceFinishes(e.Data)
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
		if err := s.writer.Err(); err != nil {
			return false, upstream.Fail(fault.UpstreamUnavailable, err)
		}
		if n := cap(s.out); n > call.UnbudgetedBytes && n > s.reserved {
			if !s.Reserve(int64(n - s.reserved)) {
				return false, upstream.OutOfMemory()
			}
			s.reserved = n
		}
	}
	s.ended = f.Done
	return !f.Done, nil
}

// send sends a stream as it arrives, and settles it before its end.
func (s *stream) send() error {
	s.call.Limit(s.idle, "no more of the stream came")
	defer s.progress.Stop() // in case of a panic
	end := s.forwardEvents()
	s.progress.Stop()
	err := end()
	s.reader.Close() // nothing reads an event any more
	return err
}

// forwardEvents sends a stream as it arrives, and returns the function to end it.
func (s *stream) forwardEvents() (end func() error) {
	for {
		before := len(s.out)
		wait := !s.reader.Buffered()
		if wait {
			s.call.Pause() // a slow client is not the provider's fault
			if err := s.sendReady(before); err != nil {
				return s.abandon
			}
			before = len(s.out)
			s.call.Restart(s.eventTimeout())
		}
		more, f := s.next()
		if f == nil && len(s.out) > maxBuffered {
			f = upstream.Fail(fault.UpstreamUnavailable, errors.New("too much came at once, or after the finish"))
		}
		switch {
		case f != nil:
			return func() error { return s.interrupted(f) }
		case !more:
			return s.finish
		case !wait && len(s.out) > s.packet():
			s.call.Pause()
			if err := s.sendReady(before); err != nil {
				return s.abandon
			}
		}
	}
}

// finish ends a stream after the end of the provider's stream.
func (s *stream) finish() error {
	switch {
	case s.Disconnected():
		return s.abandon()
	case !s.meter.Complete():
		return s.endBroken(upstream.Fail(fault.UpstreamConnectionError, errNotFinished))
	}
	return s.complete()
}

// interrupted ends a stream after a failure. If only events after the finish are missing, the
// answer is complete.
func (s *stream) interrupted(f *upstream.Failure) error {
	f = s.Interrupted(f)
	restLost := f.Rejection == nil && (f.Code == fault.UpstreamTimeout || f.Code == fault.UpstreamConnectionError)
	switch {
	case s.Disconnected():
		return s.abandon()
	case restLost && s.heldFrom >= 0:
		return s.complete()
	}
	return s.endBroken(f)
}

// eventTimeout returns the time limit for the next event. All events after the finish share one limit,
// however many keep-alives the provider sends.
func (s *stream) eventTimeout() time.Duration {
	if s.heldFrom < 0 {
		return s.idle
	}
	now := s.Now()
	if s.restDeadline.IsZero() {
		s.restDeadline = now.Add(min(s.idle, finishWait))
	}
	return max(0, s.restDeadline.Sub(now))
}

// packet returns the size of one write.
func (s *stream) packet() int {
	if s.Started {
		return packet
	}
	return firstPacket
}

// sendReady writes the first ready bytes of out in one write, except for bytes held for the settlement.
// ready must be the end of an event.
func (s *stream) sendReady(ready int) error {
	if s.heldFrom >= 0 {
		ready = min(ready, s.heldFrom)
	}
	if ready == 0 {
		return nil
	}
	if s.Disconnected() {
		return s.ClientContext().Err()
	}
	if !s.Started {
		s.DisableBuffering()
		s.WriteHead(s.contentType)
		if s.opts.FirstToken != nil {
			s.opts.FirstToken(s.Model.ID, s.FirstByte)
		}
		s.progress.Start(&s.Flow, s.produced)
	}
	if err := s.Write(s.out[:ready]); err != nil {
		return err
	}
	s.out = append(s.out[:0], s.out[ready:]...)
	if s.heldFrom >= 0 {
		s.heldFrom -= ready
	}
	return s.Flush()
}

// produced returns an estimate of the usage so far, and its charge.
func (s *stream) produced() ledger.Progress {
	u := s.estimatedUsage()
	return ledger.Progress{Cost: s.Snapshot.Cost(s.on.Line, s.Model, u, s.choice), Tokens: tokens(u), Line: s.on.Line.ID}
}

// complete settles a complete stream and sends its end.
func (s *stream) complete() error {
	if s.Disconnected() {
		return s.abandon()
	}
	s.call.Close()
	c := s.currentCounts()
	c.Usage = billable(c.Usage, s.meter.Filtered(), s.hasToken)
	s.out = s.writer.End(s.out, c.Usage)
	if s.recorder != nil {
		s.storeAnswer(s.recorder.Answer())
	}
	if !s.Started {
		if err := s.SettleFirst(s.bill(c, "")); err != nil {
			return err
		}
	} else if err := s.Settle(s.bill(c, "")); err != nil {
		s.sendError(call.LostEnd(err))
		panic(http.ErrAbortHandler)
	}
	s.heldFrom = -1
	_ = s.sendReady(len(s.out)) // the answer is settled: it stays charged if the client is gone
	return nil
}

// endBroken ends a broken stream. Without a token it is an error answer; otherwise the produced part
// is charged and the last event describes the error. Tokens received in one piece with the failure
// are sent first: no other line is tried any more, and the client's answer and charge must not
// depend on the network's segmentation.
func (s *stream) endBroken(f *upstream.Failure) error {
	s.on.RecordBreak(f)
	if !s.Started && s.hasToken {
		if err := s.sendReady(len(s.out)); err != nil {
			return s.abandon()
		}
	}
	s.call.Close()
	s.RecordFailure(f)
	s.Span.Fail(string(f.Code))
	if !s.Started {
		s.RecordWaste(s.Model, s.usedTokens())
		return s.Fail(f.Fault())
	}
	_ = s.Settle(s.bill(s.currentCounts(), f.Code)) // logged; the ledger charges it later
	s.LogBroken(f)
	s.sendError(f.FaultInStream())
	return nil
}

// sendError sends the ready events and then an error event.
func (s *stream) sendError(f *fault.Error) {
	if s.heldFrom >= 0 {
		s.out, s.heldFrom = s.out[:s.heldFrom], -1
	}
	s.out = s.writer.Fail(s.out, f)
	_ = s.sendReady(len(s.out)) // the client may be gone; no other reader needs the error
}

// abandon ends a stream after its client disconnected. It cancels the upstream call and charges the
// produced part if any byte was written to the connection.
func (s *stream) abandon() error {
	s.call.Close()
	if !s.Started {
		s.RecordWaste(s.Model, s.usedTokens())
		return s.Fail(fault.New(fault.ClientClosed, "The client disconnected."))
	}
	_ = s.Settle(s.bill(s.currentCounts(), fault.ClientClosed)) // logged; charged later
	panic(http.ErrAbortHandler)
}
