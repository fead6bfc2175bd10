package server

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Time limits for reading a request body. The total limit grows with the received bytes, so that a
// slow client can send a long body but a silent client loses its connection.
const (
	bodySilence = 30 * time.Second // maximum time without a byte
	bodyGrace   = time.Minute      // maximum total time, plus one second for each bodyRate bytes
	bodyRate    = 4 << 10
	// unreadWait limits the wait for the rest of a body after the response. If the rest arrives in
	// time, the connection can serve the next request.
	unreadWait = time.Second
	// maxUnread is the maximum length of an unread rest for which net/http keeps the connection.
	maxUnread = 256 << 10
)

// requestBody is a request body with read deadlines. At the end of the body, it removes the
// deadline, because net/http would treat a later timeout as a disconnect of the client.
type requestBody struct {
	io.ReadCloser
	client   *conn // nil in tests
	response *http.ResponseController
	now      func() time.Time
	start    time.Time
	deadline time.Time // as set on the connection
	received int64
	closes   bool // the connection is closed after this request
	atEOF    bool
}

// withDeadlines returns a copy of the request with deadlines for its body, and the body. It also
// allows a handler to send the response before the body has been read. The returned body is nil if
// the request has no body.
func withDeadlines(w http.ResponseWriter, r *http.Request, c *conn, now func() time.Time) (*http.Request, *requestBody) {
	if r.ContentLength == 0 {
		return r, nil
	}
	b := &requestBody{ReadCloser: r.Body, client: c, response: http.NewResponseController(w), now: now, start: now(),
		closes: hasAmbiguousEnd(r)}
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
		_ = b.response.SetReadDeadline(deadline) // fails only in tests, whose writers have no deadlines
	}
	n, err := b.ReadCloser.Read(p)
	b.received += int64(n)
	if err == io.EOF && !b.atEOF {
		b.atEOF = true
		_ = b.response.SetReadDeadline(time.Time{})
	}
	return n, err
}

// finish sends the response and then reads the rest of the body if the handler has not read it. If
// the rest is too long or does not arrive within unreadWait, the connection must not serve another
// request, because the rest of the body would be parsed as a request.
func (b *requestBody) finish() {
	if b == nil || b.atEOF {
		return
	}
	_ = b.response.Flush()
	if b.client != nil {
		b.client.setAnswered()
	}
	if !b.closes {
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
