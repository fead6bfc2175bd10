package sse

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/wire/rawjson"
)

// TestEventOfBrackets checks that Next rejects an event with too deep nesting, on one line and
// joined.
func TestEventOfBrackets(t *testing.T) {
	t.Parallel()
	for name, stream := range map[string]string{
		"one line": "data: " + strings.Repeat("[", 2000) + "\n\n",
		"lines":    strings.Repeat("data: "+strings.Repeat("[", 900)+"\n", 3) + "\n",
	} {
		r := NewReader(strings.NewReader("data: {}\n\n"+stream), 1<<20)
		if e, err := r.Next(); err != nil || string(e.Data) != "{}" {
			t.Fatal(string(e.Data), err)
		}
		if e, err := r.Next(); !errors.Is(err, rawjson.ErrShape) || e.Data != nil {
			t.Errorf("%s: %d bytes, %v", name, len(e.Data), err)
		}
	}
}

// TestReaderAsksForRoom checks that a buffer beyond ordinary events needs Reserve.
func TestReaderAsksForRoom(t *testing.T) {
	t.Parallel()
	const event = 300 << 10
	stream := "data: {}\n\ndata: " + strings.Repeat("x", event) + "\ndata: y\n\n"
	var reserved int64
	r := NewReader(strings.NewReader(stream), 1<<20)
	r.Reserve = func(n int64) bool { reserved += n; return true }
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if reserved < 2*event || reserved > 5*event { // the buffer and the joined lines
		t.Errorf("asked for %d bytes", reserved)
	}
	r = NewReader(strings.NewReader(stream), 1<<20)
	r.Reserve = func(int64) bool { return false }
	if _, err := r.Next(); err != nil {
		t.Error("an ordinary event:", err)
	}
	if _, err := r.Next(); !errors.Is(err, ErrNoRoom) {
		t.Error(err)
	}
}

// waitingSource is a stream in pieces. It counts the waits, and fails if the reader keeps its buffer.
type waitingSource struct {
	t      *testing.T
	reader *Reader
	pieces []string
	waits  int
}

func (s *waitingSource) Read(p []byte) (int, error) {
	if len(s.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.pieces[0])
	if s.pieces[0] = s.pieces[0][n:]; s.pieces[0] == "" {
		s.pieces = s.pieces[1:]
	}
	return n, nil
}

func (s *waitingSource) Wait() {
	s.waits++
	if s.reader.buf != nil {
		s.t.Error("the reader waits with its buffer")
	}
}

// TestReaderWaitsWithoutBuffer checks that a reader waits without its buffer between events, and keeps
// it within an event.
func TestReaderWaitsWithoutBuffer(t *testing.T) {
	t.Parallel()
	burst := "data: " + strings.Repeat("x", 2*firstBuffer) + "\n\n"
	s := &waitingSource{t: t, pieces: []string{"data: 1\n\n", "data: 2\n", "\ndata: 3\r", "\n\r\n", burst, "data: 4\n\n"}}
	s.reader = NewReader(s, 1<<20)
	var got []string
	for {
		e, err := s.reader.Next()
		if err != nil {
			break
		}
		got = append(got, string(e.Data))
	}
	if want := []string{"1", "2", "3", burst[6 : len(burst)-2], "4"}; !slices.Equal(got, want) {
		t.Errorf("events %q", got)
	}
	if s.waits != 5 { // the first event, the second, the burst, the fourth, the end
		t.Errorf("%d waits", s.waits)
	}
}
