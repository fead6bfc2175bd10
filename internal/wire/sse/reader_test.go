package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// event is a copy of an Event.
type event struct{ raw, data, name string }

func readAll(src io.Reader, limit int) ([]event, error) {
	r := NewReader(src, limit)
	var out []event
	for {
		e, err := r.Next()
		if err != nil {
			return out, err
		}
		out = append(out, event{string(e.Raw), string(e.Data), e.Name})
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   string
		want []event
		err  error
	}{
		"nothing": {"", nil, io.EOF},
		"LF":      {"data: a\n\ndata: b\n\n", []event{{"data: a\n\n", "a", ""}, {"data: b\n\n", "b", ""}}, io.EOF},
		"CRLF": {"data: a\r\n\r\ndata: b\r\n\r\n", []event{{"data: a\r\n\r\n", "a", ""},
			{"data: b\r\n\r\n", "b", ""}}, io.EOF},
		"CR":             {"data: a\r\rdata: b\r\r", []event{{"data: a\r\r", "a", ""}, {"data: b\r\r", "b", ""}}, io.EOF},
		"mixed ends":     {"data: a\r\n\ndata: b\n\r\n", []event{{"data: a\r\n\n", "a", ""}, {"data: b\n\r\n", "b", ""}}, io.EOF},
		"mark":           {"\xef\xbb\xbfdata: a\n\n", []event{{"data: a\n\n", "a", ""}}, io.EOF},
		"comment":        {": hi\n\ndata: a\n\n", []event{{": hi\n\n", "", ""}, {"data: a\n\n", "a", ""}}, io.EOF},
		"comment inside": {": hi\ndata: a\n\n", []event{{": hi\ndata: a\n\n", "a", ""}}, io.EOF},
		"blank lines": {"\n\ndata: a\n\n\n", []event{{"\n", "", ""}, {"\n", "", ""}, {"data: a\n\n", "a",
			""}, {"\n", "", ""}}, io.EOF},
		"lines joined": {"data: a\ndata:b\ndata\ndata:  c\n\n",
			[]event{{"data: a\ndata:b\ndata\ndata:  c\n\n", "a\nb\n\n c", ""}}, io.EOF},
		"named": {"event: error\ndata: a\nid: 1\nretry: 5\n\ndata: b\n\n",
			[]event{{"event: error\ndata: a\nid: 1\nretry: 5\n\n", "a", "error"}, {"data: b\n\n", "b", ""}}, io.EOF},
		"cut line":  {"data: a\n\ndata: b", []event{{"data: a\n\n", "a", ""}}, ErrTruncated},
		"cut event": {"data: a\n\ndata: b\n", []event{{"data: a\n\n", "a", ""}}, ErrTruncated},
		"done without its blank line": {"data: a\n\ndata: [DONE]\n", []event{{"data: a\n\n", "a", ""}, {"data: [DONE]\n\n",
			"[DONE]", ""}}, io.EOF},
		"done without any end": {"data:[DONE]", []event{{"data: [DONE]\n\n", "[DONE]", ""}}, io.EOF},
		"stop without its blank line": {"event: message_stop\ndata: {\"type\":\"message_stop\"}", []event{{MessageStop,
			`{"type":"message_stop"}`, "message_stop"}}, io.EOF},
		"cut stop":  {"event: message_stop\ndata: {\"type\":\"mess", nil, ErrTruncated},
		"cut done":  {"data: [DONE", nil, ErrTruncated},
		"too large": {"data: " + strings.Repeat("x", 100) + "\n\n", nil, ErrTooLarge},
		"large enough": {"data: " + strings.Repeat("x", 56) + "\n\n", []event{{"data: " + strings.Repeat("x",
			56) + "\n\n", strings.Repeat("x", 56), ""}}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for way, src := range map[string]io.Reader{
				"whole":         strings.NewReader(test.in),
				"byte by byte":  iotest.OneByteReader(strings.NewReader(test.in)),
				"end with data": iotest.DataErrReader(strings.NewReader(test.in)),
			} {
				got, err := readAll(src, 64)
				if !slices.Equal(got, test.want) || !errors.Is(err, test.err) {
					t.Errorf("%s: %q, %v; want %q, %v", way, got, err, test.want, test.err)
				}
			}
		})
	}
}

func TestEventReaderPassesTheSourcesError(t *testing.T) {
	t.Parallel()
	reset := fmt.Errorf("connection reset: %w", io.EOF) // a failure in spite of the EOF
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b"), iotest.ErrReader(reset)), 64)
	if e, err := r.Next(); err != nil || string(e.Data) != "a" || r.Ended() {
		t.Errorf("got %q, %v", e.Data, err)
	}
	if _, err := r.Next(); !errors.Is(err, reset) || r.Ended() {
		t.Errorf("got %v, ended %v", err, r.Ended())
	}
	r = NewReader(strings.NewReader("data: a\n\n\n"), 64)
	for range 3 {
		_, _ = r.Next()
	}
	if !r.Ended() {
		t.Error("a clean end is none")
	}
}

func TestEventReaderBuffered(t *testing.T) {
	t.Parallel()
	parts := make(chan string, 3)
	parts <- "data: a\n\ndata: b\n\ndata: c"
	parts <- "\n\n"
	close(parts)
	r := NewReader(readerFunc(func(p []byte) (int, error) {
		part, ok := <-parts
		if !ok {
			return 0, io.EOF
		}
		return copy(p, part), nil
	}), 64)
	if r.Buffered() {
		t.Error("an event is said to be there before anything was read")
	}
	for _, want := range []struct {
		data string
		more bool
	}{{"a", true}, {"b", false}, {"c", false}} {
		e, err := r.Next()
		if err != nil || string(e.Data) != want.data || r.Buffered() != want.more {
			t.Errorf("got %q, %v, more %v; want %v", e.Data, err, r.Buffered(), want)
		}
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestEventReaderDoesNotAllocatePerEvent(t *testing.T) {
	body := []byte(strings.Repeat("event: x\ndata: {\"choices\":[]}\n\n: hi\n\ndata: a\ndata: b\n\n", 2000))
	perStream := testing.AllocsPerRun(10, func() {
		r := NewReader(bytes.NewReader(body), 1<<20)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	})
	if perStream > 12 {
		t.Errorf("%v allocations for 6000 events", perStream)
	}
}

// splitReader returns its data in pieces of the given sizes.
type splitReader struct {
	data  []byte
	sizes []byte
}

func (s *splitReader) Read(p []byte) (int, error) {
	if len(s.data) == 0 {
		return 0, io.EOF
	}
	size := len(s.data)
	if len(s.sizes) > 0 {
		size, s.sizes = min(size, int(s.sizes[0]%16)+1), s.sizes[1:]
	}
	n := copy(p, s.data[:size])
	s.data = s.data[n:]
	return n, nil
}

// FuzzEventReader checks that the events do not depend on the sizes of the reads, and together are
// the stream.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\ndata: b\r\rdata: c\n\n: x\n\n"), []byte{1, 2, 3})
	f.Add([]byte("\xef\xbb\xbfevent: e\rdata: a\r\r\ndata: [DONE]"), []byte{0, 0, 0, 0, 5})
	f.Add([]byte("data: a\n\nevent: message_stop\ndata: {}"), []byte{9})
	f.Add([]byte("\r\n\r\r\n\n\r"), []byte{0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		const limit = 256
		whole, err := readAll(bytes.NewReader(stream), limit)
		split, splitErr := readAll(&splitReader{data: stream, sizes: cuts}, limit)
		single, singleErr := readAll(iotest.OneByteReader(bytes.NewReader(stream)), limit)
		if !slices.Equal(whole, split) || !errors.Is(splitErr, err) || !slices.Equal(whole, single) || !errors.Is(singleErr, err) {
			t.Fatalf("whole %q, %v\nsplit %q, %v\nsingle %q, %v", whole, err, split, splitErr, single, singleErr)
		}
		var raw strings.Builder
		for _, e := range whole {
			raw.WriteString(e.raw)
		}
		rest, ended := strings.CutPrefix(strings.TrimPrefix(string(stream), "\xef\xbb\xbf"), raw.String())
		if !ended && !strings.HasSuffix(raw.String(), Done) && !strings.HasSuffix(raw.String(), MessageStop) {
			t.Fatalf("events %q are not the stream %q", raw.String(), stream)
		}
		if errors.Is(err, io.EOF) && ended && strings.Trim(rest, "\r\n") != "" {
			t.Fatalf("lost %q", rest)
		}
	})
}
