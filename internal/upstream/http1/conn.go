package http1

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"
)

// conn is one connection. One goroutine at a time uses it; any goroutine may close it.
type conn struct {
	net.Conn  // TLS, or the socket itself
	transport *Transport
	host      *host
	socket    syscall.RawConn // for isReady; nil if the dialer does not return a socket
	reader    *bufio.Reader
	headLeft  int64 // while isHead: bytes left for the head of the response, including 1xx responses
	isHead    bool  // whether the head of a response is being read
	reused    bool
	idleSince time.Time
}

var (
	// errNotSent is wrapped by the error of a request if none of its bytes was written.
	errNotSent = errors.New("no byte of the request was sent")
	// errHeadTooLong is the error of a response whose head exceeds Transport.MaxResponseHeaderBytes.
	errHeadTooLong = errors.New("the response's headers are too long")
)

// limitedReader reads from a connection, and no more than headLeft bytes of a response's head.
type limitedReader struct{ c *conn }

// Read implements io.Reader.
func (r limitedReader) Read(p []byte) (int, error) {
	c := r.c
	if c.isHead {
		if c.headLeft <= 0 {
			return 0, errHeadTooLong
		}
		p = p[:min(int64(len(p)), c.headLeft)]
	}
	n, err := c.Conn.Read(p)
	c.headLeft -= int64(n)
	return n, err
}

// close closes the connection.
func (c *conn) close() { _ = c.Conn.Close() } // the connection is not used again

// roundTrip sends a request and reads the head of its response. The response's body returns the
// connection to the transport. After an error the connection is closed.
func (c *conn) roundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	stop := context.AfterFunc(ctx, c.close)
	var wait time.Duration // the longest time until the head of the response
	if _, ok := ctx.Deadline(); !ok {
		wait = c.transport.standard.ResponseHeaderTimeout
	}
	sent, sendErr := c.send(req)
	if sendErr != nil {
		if errors.Is(sendErr, errNotSent) || isBodyError(sendErr) {
			return nil, c.fail(ctx, stop, sendErr)
		}
		wait = earlyWait
	}
	resp, err := c.readResponse(req, wait)
	if err != nil {
		return nil, c.fail(ctx, stop, sent.orError(cmp.Or(sendErr, err)))
	}
	resp.Close = resp.Close || sendErr != nil
	c.wrapBody(resp, sent, stop)
	return resp, nil
}

// earlyWait bounds the wait for a response after a failed write of the request, because the host may have
// responded early and closed the connection.
const earlyWait = 50 * time.Millisecond

// fail closes the connection and returns the cause of the failure of its request.
func (c *conn) fail(ctx context.Context, stop func() bool, err error) error {
	stop()
	c.close()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// readResponse reads the head of the response. It waits no longer than wait, unless wait is 0.
func (c *conn) readResponse(req *http.Request, wait time.Duration) (*http.Response, error) {
	if wait > 0 {
		_ = c.SetReadDeadline(c.transport.now().Add(wait)) // if it fails, so does reading
		defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	}
	c.isHead, c.headLeft = true, c.transport.standard.MaxResponseHeaderBytes
	for {
		resp, err := http.ReadResponse(c.reader, req)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the host switched protocols unasked")
		case resp.StatusCode < 100 || resp.StatusCode >= 200:
			c.isHead = false
			return resp, nil
		}
	}
}

// wrapBody replaces the response's body by one that returns or closes the connection at its end.
func (c *conn) wrapBody(resp *http.Response, sent *sending, stop func() bool) {
	b := &body{source: resp.Body, conn: c, sent: sent, stop: stop, canReuse: !resp.Close}
	if resp.Body == http.NoBody {
		b.end(true)
		return
	}
	resp.Body = b
}

// body is the body of a response. One goroutine reads; any goroutine may close.
type body struct {
	source   io.Reader
	conn     *conn
	sent     *sending
	stop     func() bool // stops watching the request's context
	canReuse bool
	ended    atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	if err != nil {
		b.end(errors.Is(err, io.EOF))
	}
	return n, err
}

// Wait waits until the connection has data or fails.
func (b *body) Wait() {
	if !b.ended.Load() {
		_, _ = b.conn.reader.Peek(1) // Read returns the error
	}
}

// Close implements io.Closer. It closes the connection unless the body was read to its end.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end returns the connection to the transport, or closes it.
func (b *body) end(complete bool) {
	if b.ended.Swap(true) {
		return
	}
	if isWatching := b.stop(); isWatching && complete && b.canReuse && b.sent.isDone() && b.conn.reader.Buffered() == 0 {
		b.conn.transport.put(b.conn)
		return
	}
	b.conn.close()
}
