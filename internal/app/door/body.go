package door

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Bounds of the time that a request body takes to arrive. They move with what
// has arrived, so that a slow line is served, however long the body, and a
// silent one is not kept for ever.
const (
	bodySilence = 30 * time.Second // without a byte
	bodyGrace   = time.Minute      // in all, and a second more for each bodyRate bytes that came
	bodyRate    = 4 << 10
	// unreadWait is how long the rest of a body that nobody reads is waited for
	// once the answer is out, so that the connection can serve the next request.
	unreadWait = time.Second
	// smallRest is the longest rest that net/http waits for at all.
	smallRest = 256 << 10
)

// arriving is a request body on its way. It moves the read deadline of its
// connection, and takes it away at the end: a connection with a deadline would
// count as gone while the answer runs.
type arriving struct {
	io.ReadCloser
	from   *conn // nil in tests, and where the connection is not TCP
	answer http.ResponseWriter
	conn   *http.ResponseController
	now    func() time.Time
	began  time.Time
	until  time.Time // the deadline that is set
	came   int64
	ended  bool
}

// receive makes body deadlines for a request, and lets its answer go out before
// a body that the handler does not read. The request is a copy: net/http looks
// at its own.
func receive(w http.ResponseWriter, r *http.Request, c *conn, now func() time.Time) (*http.Request, *arriving) {
	if r.ContentLength == 0 {
		return r, nil
	}
	b := &arriving{ReadCloser: r.Body, from: c, answer: w, conn: http.NewResponseController(w), now: now, began: now()}
	if r.ContentLength <= smallRest {
		_ = b.conn.EnableFullDuplex() // else net/http reads the rest first; a longer rest it never reads
	}
	again := *r
	again.Body = b
	return &again, b
}

// Read implements io.Reader.
func (b *arriving) Read(p []byte) (int, error) {
	now := b.now()
	until := now.Add(bodySilence)
	if all := b.began.Add(bodyGrace + time.Duration(b.came/bodyRate)*time.Second); all.Before(until) {
		until = all
	}
	if until.Sub(b.until) > bodySilence/8 || until.Before(b.until) {
		b.until = until
		_ = b.conn.SetReadDeadline(until) // a writer without deadlines is a test's
	}
	n, err := b.ReadCloser.Read(p)
	b.came += int64(n)
	if err == io.EOF && !b.ended {
		b.ended = true
		_ = b.conn.SetReadDeadline(time.Time{})
		if b.from != nil && b.from.head.isLost() { // before the answer, which can still say so
			b.answer.Header().Set("Connection", "close")
		}
	}
	return n, err
}

// leave sends the answer and waits a moment for the rest of a body that the
// handler has not read, so that the connection can serve the next request. If
// it does not come, or does not end where its bytes say, the connection is of no
// use any more: what comes later must not be taken for a request.
func (b *arriving) leave() {
	if b == nil {
		return
	}
	if !b.ended {
		_ = b.conn.Flush() // a client that is gone has no rest either
		if b.from != nil {
			b.from.wrote()
		}
		_ = b.conn.SetReadDeadline(b.now().Add(unreadWait))
		if _, err := io.CopyN(io.Discard, b.ReadCloser, smallRest); errors.Is(err, io.EOF) {
			b.ended = true
			_ = b.conn.SetReadDeadline(time.Time{})
		}
	}
	if b.from != nil && b.from.head.end(b.ended) {
		b.from.dropped.Store(!b.ended)
		b.from.dead.Store(true)
	}
}
