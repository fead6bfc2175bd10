package door

import (
	"io"
	"time"
)

// Bounds of what is read behind an answer whose request was not read to its end, so
// that it arrives: a connection that is closed over unread bytes is reset, and whoever
// still sends loses the answer. A proxy answers 502 in its place.
const (
	lingerSilence = 2 * time.Second // without a byte
	lingerTime    = 10 * time.Second
	lingerBytes   = 64 << 20 // a body of the usual max_body, and as much again
)

// linger ends what is sent, and reads on for a while, once.
func (c *conn) linger() {
	if c.lingered.Swap(true) {
		return
	}
	_ = c.TCPConn.CloseWrite() // who is gone misses nothing
	c.wrote()
	readOn(c.TCPConn, c.door.now)
}

// CloseWrite is what net/http asks for before it closes a connection over unread bytes.
func (c *conn) CloseWrite() error {
	c.linger()
	return nil
}

// readOn reads what comes, up to an end of the bounds or of the connection.
func readOn(from interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}, now func() time.Time) {
	end := now().Add(lingerTime)
	unwanted := make([]byte, 4<<10)
	for left := int64(lingerBytes); left > 0; {
		until := now().Add(lingerSilence)
		if end.Before(until) {
			until = end
		}
		if from.SetReadDeadline(until) != nil {
			return
		}
		n, err := from.Read(unwanted)
		if err != nil {
			return
		}
		left -= int64(n)
	}
}
