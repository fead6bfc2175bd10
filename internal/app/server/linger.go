package server

import (
	"io"
	"time"
)

// Limits for reading on after a response, if the request was not read to its end. Closing a
// connection with unread bytes resets it, and a client with more to send loses the
// response. A proxy then answers 502.
const (
	lingerSilence = 2 * time.Second // without a byte
	lingerTime    = 10 * time.Second
	lingerBytes   = 64 << 20 // twice the default of max_body
)

// linger ends the response and discards further bytes of the client, up to the limits.
// Later calls are no-ops.
func (c *conn) linger() {
	if c.lingered.Swap(true) {
		return
	}
	_ = c.TCPConn.CloseWrite()
	c.setAnswered()
	discard(c.TCPConn, c.listener.now)
}

// CloseWrite lingers. net/http calls it before it closes a connection with unread bytes.
func (c *conn) CloseWrite() error {
	c.linger()
	return nil
}

// discard reads until a limit or the end of the connection.
func discard(from interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}, now func() time.Time) {
	end := now().Add(lingerTime)
	buffer := make([]byte, 4<<10)
	for left := int64(lingerBytes); left > 0; {
		deadline := now().Add(lingerSilence)
		if end.Before(deadline) {
			deadline = end
		}
		if from.SetReadDeadline(deadline) != nil {
			return
		}
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		left -= int64(n)
	}
}
