package sandbox

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errClosed is returned by reads of a closed body.
var errClosed = errors.New("sandbox: the body is closed")

// pause waits for d, or for the end of ctx or of closed (nil: never).
func pause(ctx context.Context, closed <-chan struct{}, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-closed:
		return errClosed
	}
}

// streamBody is the body of a streamed answer. Read waits for the time of a frame and
// then renders it. Only one goroutine may call Read; any may call Close.
type streamBody struct {
	ctx     context.Context
	closed  chan struct{}
	closing sync.Once

	// The reader's.
	script  script
	steps   []step
	options options
	inside  bool   // the stream ends in an error
	begun   bool   // the wait for the first token is over
	tokens  int    // produced so far
	frames  int    // rendered so far
	pending []byte // rendered and not read yet
}

func newStreamBody(ctx context.Context, s script, o options) *streamBody {
	return &streamBody{
		ctx: ctx, closed: make(chan struct{}),
		script: s, steps: s.steps(), options: o, inside: o.fail == failInside,
	}
}

// Read implements io.Reader. It returns frames without a wait together, as from a fast
// provider.
func (s *streamBody) Read(p []byte) (int, error) {
	n := copy(p, s.pending)
	s.pending = s.pending[n:]
	for n < len(p) {
		if n > 0 && s.wait() > 0 {
			return n, nil
		}
		frame, err := s.next()
		if err != nil {
			if n > 0 && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
				return n, nil // the next read finds it again
			}
			return n, err
		}
		k := copy(p[n:], frame)
		n += k
		s.pending = frame[k:]
	}
	return n, nil
}

// wait returns the delay of the next frame. The delay of the first token comes before
// the frame that opens its part of the answer, or before the end of an empty answer.
func (s *streamBody) wait() time.Duration {
	if len(s.steps) == 0 {
		return 0
	}
	switch at := s.steps[0].pace; {
	case s.stalled():
		return time.Hour // any positive wait will do
	case at != paceBegins && at != paceToken:
		return 0
	case !s.begun:
		return s.options.delay
	case at == paceToken && s.tokens > 0:
		return s.options.chunkDelay
	default:
		return 0
	}
}

// stalled reports whether the stream stops here.
func (s *streamBody) stalled() bool {
	return s.options.stallAfter >= 0 && s.tokens >= s.options.stallAfter && !s.opening()
}

// broken reports whether the stream breaks here.
func (s *streamBody) broken() bool {
	return s.options.breakAfter >= 0 && s.tokens >= s.options.breakAfter && !s.opening()
}

// opening reports whether an opening frame is still to come.
func (s *streamBody) opening() bool { return len(s.steps) > 0 && s.steps[0].pace == paceOpening }

// next waits for the next frame and renders it.
func (s *streamBody) next() ([]byte, error) {
	select {
	case <-s.closed:
		return nil, errClosed
	default:
	}
	if len(s.steps) == 0 {
		return nil, io.EOF
	}
	broken := s.broken()
	switch {
	case s.inside && (broken || s.options.breakAfter < 0):
		s.steps = nil
		return s.render(step{event: stepError}), nil
	case broken:
		return nil, io.ErrUnexpectedEOF
	case s.stalled():
		select {
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case <-s.closed:
			return nil, errClosed
		}
	}
	if err := pause(s.ctx, s.closed, s.wait()); err != nil {
		return nil, err
	}
	at := s.steps[0]
	s.steps = s.steps[1:]
	s.begun = s.begun || at.pace == paceBegins || at.pace == paceToken
	if at.pace == paceToken {
		s.tokens++
	}
	return s.render(at), nil
}

// render renders a frame and counts it.
func (s *streamBody) render(at step) []byte {
	frame := s.script.frame(at, s.frames)
	if len(frame) > 0 {
		s.frames++
	}
	return frame
}

// Close implements io.Closer. It ends a waiting Read.
func (s *streamBody) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return nil
}

// plainBody is the body of a plain answer.
type plainBody struct {
	ctx     context.Context
	closed  chan struct{}
	closing sync.Once

	// The reader's.
	rest  []byte
	after error // returned after rest; if nil, Read blocks until the end
}

// newPlainBody returns the body of a plain answer, which may break or stall in its
// middle.
func newPlainBody(ctx context.Context, s script, o options) *plainBody {
	w := &plainBody{ctx: ctx, closed: make(chan struct{}), rest: s.whole(), after: io.EOF}
	switch {
	case o.fail == failInside:
	case o.breakAfter >= 0:
		w.rest, w.after = w.rest[:len(w.rest)/2], io.ErrUnexpectedEOF
	case o.stallAfter >= 0:
		w.rest, w.after = w.rest[:len(w.rest)/2], nil
	}
	return w
}

// Read implements io.Reader.
func (w *plainBody) Read(p []byte) (int, error) {
	select {
	case <-w.closed:
		return 0, errClosed
	default:
	}
	if len(w.rest) > 0 {
		n := copy(p, w.rest)
		w.rest = w.rest[n:]
		return n, nil
	}
	if w.after != nil {
		return 0, w.after
	}
	select {
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	case <-w.closed:
		return 0, errClosed
	}
}

// Close implements io.Closer. It ends a waiting Read.
func (w *plainBody) Close() error {
	w.closing.Do(func() { close(w.closed) })
	return nil
}
