package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"tollgate/internal/fault"
)

// deadlines is a writer that keeps the read deadlines it is given, as a span
// from now; 0 is none.
type deadlines struct {
	http.ResponseWriter
	set []time.Duration
}

// SetReadDeadline is what http.ResponseController looks for.
func (d *deadlines) SetReadDeadline(at time.Time) error {
	span := time.Duration(0)
	if !at.IsZero() {
		span = time.Until(at).Round(time.Second)
	}
	d.set = append(d.set, span)
	return nil
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	slow := fmt.Errorf("read: %w", os.ErrDeadlineExceeded)
	for _, c := range []struct {
		name     string
		body     io.Reader
		length   int64
		coding   []string
		code     fault.Code // empty: the body is read
		closes   bool
		deadline string
	}{
		{"short", strings.NewReader("{}"), 2, nil, "", false, "[30s 0s]"},
		{"plain coding", strings.NewReader("{}"), 2, []string{"identity, "}, "", false, "[30s 0s]"},
		{"long", strings.NewReader(strings.Repeat(" ", limit)), limit, nil, "", false, "[46s 0s]"},
		{"no length", strings.NewReader("{}"), -1, nil, "", false, "[46s 0s]"},
		{"announced too long", iotest.ErrReader(errors.New("was read")), limit + 1, nil, fault.RequestTooLarge, false, "[]"},
		{"too long", strings.NewReader(strings.Repeat(" ", limit+1)), -1, nil, fault.RequestTooLarge, false, "[46s]"},
		{"compressed", strings.NewReader("x"), 1, []string{"identity", "br"}, fault.InvalidEncoding, false, "[30s 0s]"},
		{"slow", iotest.ErrReader(slow), 10, nil, fault.InvalidRequest, true, "[30s]"},
		{"broken off", iotest.ErrReader(io.ErrUnexpectedEOF), 10, nil, fault.InvalidRequest, true, "[30s]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("POST", "/", c.body)
			r.ContentLength = c.length
			r.Header["Content-Encoding"] = c.coding
			w := &deadlines{ResponseWriter: httptest.NewRecorder()}
			got, err := readBody(&answer{ResponseWriter: w}, r, limit)
			var f *fault.Error
			switch {
			case c.code == "":
				if err != nil || len(got) == 0 {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			case !errors.As(err, &f) || f.Code != c.code:
				t.Errorf("got %v, want %s", err, c.code)
			}
			if closes := w.Header().Get("Connection") == "close"; closes != c.closes {
				t.Errorf("closes the connection: %v", closes)
			}
			if set := fmt.Sprint(w.set); set != c.deadline {
				t.Errorf("deadlines %s, want %s", set, c.deadline)
			}
		})
	}
}
