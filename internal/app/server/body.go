package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits of the time for a request body to arrive. They grow with the received bytes, so
// that a slow client can send a long body and a silent one cannot keep
// its connection.
const (
	bodySilence = 30 * time.Second // without a byte
	bodyGrace   = time.Minute      // in total, plus one second for each bodyRate bytes
	bodyRate    = 4 << 10
	// unreadWait limits the wait for the rest of a body after the response.
	// If it arrives in time, the connection can serve the next request.
	unreadWait = time.Second
	// maxUnread is the longest rest for which net/http keeps a connection.
	maxUnread = 256 << 10
)

// requestBody is a request body with read deadlines. It removes the deadline at the end
// of the body, because net/http would take a later timeout for a lost client.
type requestBody struct {
	io.ReadCloser
	client   *conn // nil in tests
	response *http.ResponseController
	now      func() time.Time
	start    time.Time
	deadline time.Time // as set on the connection
	received int64
	last     bool // the connection is closed after this request
	ended    bool
}

// withDeadlines returns a copy of the request with deadlines for its body, and the body. It
// also lets the response go out before the body has been read. The body is nil if the
// request has none.
func withDeadlines(w http.ResponseWriter, r *http.Request, c *conn, now func() time.Time) (*http.Request, *requestBody) {
	if r.ContentLength == 0 {
		return r, nil
	}
	b := &requestBody{ReadCloser: r.Body, client: c, response: http.NewResponseController(w), now: now, start: now(), last: hasAmbiguousEnd(r)}
	if r.ContentLength <= maxUnread {
		_ = b.response.EnableFullDuplex() // otherwise net/http reads the rest before it sends the response
	}
	limited := *r
	limited.Body = b
	return &limited, b
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	now := b.now()
	deadline := now.Add(bodySilence)
	if total := b.start.Add(bodyGrace + time.Duration(b.received/bodyRate)*time.Second); total.Before(deadline) {
		deadline = total
	}
	if deadline.Sub(b.deadline) > bodySilence/8 || deadline.Before(b.deadline) {
		b.deadline = deadline
		_ = b.response.SetReadDeadline(deadline) // only test writers have none
	}
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	if err == io.EOF && !b.ended {
		b.ended = true
		_ = b.response.SetReadDeadline(time.Time{})
	}
	return n, err
}

// finish sends the response and reads a short rest of the body if the handler has
// not. If the end of the body does not arrive within unreadWait, the connection must not
// serve another request, because the rest of the body would be taken for one.
func (b *requestBody) finish() {
	if b == nil || b.ended {
		return
	}
	_ = b.response.Flush()
	if b.client != nil {
		b.client.setAnswered()
	}
	if !b.last {
		_ = b.response.SetReadDeadline(b.now().Add(unreadWait))
		if _, err := io.CopyN(io.Discard, b.ReadCloser, maxUnread+1); errors.Is(err, io.EOF) {
			_ = b.response.SetReadDeadline(time.Time{})
			return
		}
	}
	if b.client != nil {
		b.client.spent.Store(true)
	}
}
