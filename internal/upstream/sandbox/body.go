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

// closing is the part of a body that ends a waiting Read.
type closing struct {
	closed chan struct{}
	once   sync.Once
}

// Close implements io.Closer.
func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return nil
}

// pause waits until d has passed, ctx ends, or closed is closed. A nil channel is never closed.
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

// streamBody is the body of a streamed answer. Read waits for the time of the next frame and then
// renders the frame. Only one goroutine may call Read; any goroutine may call Close.
type streamBody struct {
	ctx context.Context
	closing

	// The fields below belong to the goroutine that calls Read.
	script      script
	steps       []step
	options     options
	endsInError bool   // the stream ends with an error event
	firstToken  bool   // the delay of the first token has passed
	tokens      int    // produced so far
	frames      int    // rendered so far
	pending     []byte // rendered and not read yet
}

func newStreamBody(ctx context.Context, s script, o options) *streamBody {
	return &streamBody{
		ctx: ctx, closing: closing{closed: make(chan struct{})},
		script: s, steps: s.steps(), options: o, endsInError: o.fail == failInside,
	}
}

// Read implements io.Reader. It returns frames without a delay between them together, like a fast
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
				return n, nil // the next Read returns the error
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
	switch pace := s.steps[0].pace; {
	case s.stalled():
		return time.Hour // the value does not matter: next waits for the end of ctx
	case pace != paceBegins && pace != paceToken:
		return 0
	case !s.firstToken:
		return s.options.delay
	case pace == paceToken && s.tokens > 0:
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
	case s.endsInError && (broken || s.options.breakAfter < 0):
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
	current := s.steps[0]
	s.steps = s.steps[1:]
	s.firstToken = s.firstToken || current.pace == paceBegins || current.pace == paceToken
	if current.pace == paceToken {
		s.tokens++
	}
	return s.render(current), nil
}

// render renders a frame and counts it.
func (s *streamBody) render(next step) []byte {
	frame := s.script.frame(next, s.frames)
	if len(frame) > 0 {
		s.frames++
	}
	return frame
}

// plainBody is the body of a plain answer.
type plainBody struct {
	ctx context.Context
	closing

	// The fields below belong to the goroutine that calls Read.
	rest     []byte
	finalErr error // returned after rest; if nil, Read blocks until ctx ends or the body is closed
}

// newPlainBody returns the body of a plain answer. Depending on the options, it breaks or stalls in
// the middle.
func newPlainBody(ctx context.Context, s script, o options) *plainBody {
	b := &plainBody{ctx: ctx, closing: closing{closed: make(chan struct{})}, rest: s.whole(), finalErr: io.EOF}
	switch {
	case o.fail == failInside:
	case o.breakAfter >= 0:
		b.rest, b.finalErr = b.rest[:len(b.rest)/2], io.ErrUnexpectedEOF
	case o.stallAfter >= 0:
		b.rest, b.finalErr = b.rest[:len(b.rest)/2], nil
	}
	return b
}

// Read implements io.Reader.
func (b *plainBody) Read(p []byte) (int, error) {
	select {
	case <-b.closed:
		return 0, errClosed
	default:
	}
	if len(b.rest) > 0 {
		n := copy(p, b.rest)
		b.rest = b.rest[n:]
		return n, nil
	}
	if b.finalErr != nil {
		return 0, b.finalErr
	}
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-b.closed:
		return 0, errClosed
	}
}
