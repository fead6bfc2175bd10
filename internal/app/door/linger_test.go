package door

import (
	"errors"
	"io"
	"testing"
	"time"
)

// stuff is a body of so many bytes.
func stuff(n int64) io.Reader { return io.LimitReader(zeros{}, n) }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestNobodyIsReadForEver: who sends on without end is cut.
func TestNobodyIsReadForEver(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, refuser)
	conn := dial(t, d)
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(conn, stuff(1<<30)); err == nil {
		t.Errorf("%d bytes were taken", n)
	} else if isTimeout(err) {
		t.Errorf("the connection is open after %d bytes: %v", n, err)
	}
}

// slow is a connection whose reads take their time and obey their deadline.
type slow struct {
	now   time.Time
	until time.Time
	every time.Duration
	reads int
}

func (s *slow) SetReadDeadline(t time.Time) error { s.until = t; return nil }

func (s *slow) Read(p []byte) (int, error) {
	if s.now = s.now.Add(s.every); s.now.After(s.until) {
		return 0, errors.New("too late")
	}
	s.reads++
	return 1, nil
}

// TestReadingOnIsBounded: by a silence, and in all.
func TestReadingOnIsBounded(t *testing.T) {
	t.Parallel()
	for every, reads := range map[time.Duration]int{
		lingerSilence + time.Millisecond: 0,
		lingerSilence:                    int(lingerTime / lingerSilence),
		lingerTime / 100:                 100,
	} {
		s := &slow{now: time.Unix(1_000_000, 0), every: every}
		readOn(s, func() time.Time { return s.now })
		if s.reads != reads {
			t.Errorf("a byte every %s: %d were read, want %d", every, s.reads, reads)
		}
	}
}

// TestLateBodiesAreReadOn: a body that comes when nobody waits for it any more does not
// reset the connection, over whose end the client may still read its answer.
func TestLateBodiesAreReadOn(t *testing.T) {
	t.Parallel()
	d, _ := openDoor(t, Options{MaxConnections: 100, MaxConnectionsPerAddress: 100}, refuser)
	for _, head := range []string{"Content-Length: 1000", "Content-Length: 100000000", "Transfer-Encoding: chunked"} {
		t.Run(head, func(t *testing.T) {
			t.Parallel()
			c := dial(t, d)
			if status := say(c, "POST / HTTP/1.1\r\nHost: x\r\n"+head+"\r\n\r\n"); status != 401 {
				t.Fatalf("answered %d, want 401", status)
			}
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatalf("the client reads %v; want the end", err)
			}
			if _, err := io.Copy(c, stuff(8<<20)); err != nil {
				t.Errorf("the client cannot send: %v", err)
			}
		})
	}
}
