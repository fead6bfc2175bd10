package server

import (
	"errors"
	"io"
	"testing"
	"time"
)

// body returns n zero bytes.
func body(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestLingerIsBounded checks that a client cannot keep its connection open by sending without end.
func TestLingerIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, unauthorized)
	conn := dial(t, s)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(conn, body(1<<30)); err == nil {
		t.Errorf("the server read %d bytes", n)
	} else if isTimeout(err) {
		t.Errorf("the connection is still open after %d bytes: %v", n, err)
	}
}

// slow is a connection that receives a byte at every interval.
type slow struct {
	now      time.Time
	deadline time.Time
	interval time.Duration
	reads    int
}

func (s *slow) SetReadDeadline(t time.Time) error { s.deadline = t; return nil }

func (s *slow) Read(p []byte) (int, error) {
	if s.now = s.now.Add(s.interval); s.now.After(s.deadline) {
		return 0, errors.New("timeout")
	}
	s.reads++
	return 1, nil
}

// TestDiscardIsBounded checks the limits on a silence and on the total time.
func TestDiscardIsBounded(t *testing.T) {
	t.Parallel()
	for interval, reads := range map[time.Duration]int{
		lingerSilence + time.Millisecond: 0,
		lingerSilence:                    int(lingerTime / lingerSilence),
		lingerTime / 100:                 100,
	} {
		s := &slow{now: time.Unix(1_000_000, 0), interval: interval}
		discard(s, func() time.Time { return s.now })
		if s.reads != reads {
			t.Errorf("a byte every %s: read %d, want %d", interval, s.reads, reads)
		}
	}
}

// TestLateBodiesAreDiscarded checks that a body that arrives after its response does not reset the
// connection, because the client may not have read the response yet.
func TestLateBodiesAreDiscarded(t *testing.T) {
	t.Parallel()
	s, _ := startServer(t, Options{}, unauthorized)
	for _, field := range []string{"Content-Length: 1000", "Content-Length: 100000000", "Transfer-Encoding: chunked"} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			if status := roundTrip(c, "POST / HTTP/1.1\r\nHost: x\r\n"+field+"\r\n\r\n"); status != 401 {
				t.Fatalf("status %d, want 401", status)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatalf("the client reads %v, want EOF", err)
			}
			if _, err := io.Copy(c, body(8<<20)); err != nil {
				t.Errorf("the client cannot send: %v", err)
			}
		})
	}
}
