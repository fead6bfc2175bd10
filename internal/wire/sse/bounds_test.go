package sse

import (
	"errors"
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
