package api

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"tollgate/internal/fault"
)

func TestReadBody(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	slow := fmt.Errorf("read: %w", os.ErrDeadlineExceeded)
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		coding []string
		code   fault.Code // empty: the body is read
		closes bool
	}{
		{"short", strings.NewReader("{}"), 2, nil, "", false},
		{"plain coding", strings.NewReader("{}"), 2, []string{"identity, "}, "", false},
		{"long", strings.NewReader(strings.Repeat(" ", limit)), limit, nil, "", false},
		{"no length", strings.NewReader("{}"), -1, nil, "", false},
		{"announced too long", iotest.ErrReader(errors.New("was read")), limit + 1, nil, fault.RequestTooLarge, false},
		{"too long", strings.NewReader(strings.Repeat(" ", limit+1)), -1, nil, fault.RequestTooLarge, false},
		{"compressed", strings.NewReader("x"), 1, []string{"identity", "br"}, fault.InvalidEncoding, false},
		{"slow", iotest.ErrReader(slow), 10, nil, fault.InvalidJSON, true},
		{"broken off", iotest.ErrReader(io.ErrUnexpectedEOF), 10, nil, fault.InvalidJSON, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest("POST", "/", c.body)
			r.ContentLength = c.length
			r.Header["Content-Encoding"] = c.coding
			w := httptest.NewRecorder()
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
		})
	}
}
