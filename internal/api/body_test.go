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

	"tollgate/internal/bounded"
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
			got, err := readBody(&answer{ResponseWriter: w}, r, limit, func(int64) error { return nil })
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

// TestBodiesHaveABudget: memory grows with what arrives, an account gets half,
// and what was taken is given back.
func TestBodiesHaveABudget(t *testing.T) {
	t.Parallel()
	const largest = 1 << 20
	all := newBodies(1, largest) // as much as two of the largest
	send := func(b *body, size int, announced int64) error {
		r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader(strings.Repeat(" ", size)), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if announced < 0 {
			r = httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat(" ", size)))
		}
		r.ContentLength = announced
		_, err := b.read(httptest.NewRecorder(), r, largest)
		return err
	}
	first := &body{held: all.body("a")}
	if err := send(first, largest, -1); err != nil {
		t.Fatal(err)
	}
	if first.held.bytes < 2*largest || first.held.bytes > 2*(largest+1) {
		t.Errorf("%d bytes are held", first.held.bytes)
	}
	second := &body{held: all.body("a")}
	if f := fault.Of(send(second, largest, -1)); f == nil || f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("a second one of the account: %v", f)
	}
	second.held.release()
	small := &body{held: all.body("a")}
	if err := send(small, bounded.Small/2, -1); err != nil || small.held.bytes != 0 {
		t.Errorf("a small one: %v, %d bytes", err, small.held.bytes)
	}
	other := &body{held: all.body("b")}
	if err := send(other, largest, -1); err != nil {
		t.Error("another account's:", err)
	}
	third := &body{held: all.body("c")}
	if f := fault.Of(send(third, largest, -1)); f == nil || f.Code != fault.ServiceUnavailable {
		t.Errorf("one more than the node has room for: %v", f)
	}
	for _, b := range []*body{first, other, third} {
		b.held.release()
	}
	announced := &body{held: all.body("a")}
	if err := send(announced, 10, largest); err == nil || announced.held.bytes != 0 {
		t.Errorf("%v, and %d bytes for a length alone", err, announced.held.bytes)
	}
	if all.held != 0 || len(all.by) != 0 {
		t.Errorf("%d bytes are left, of %v", all.held, all.by)
	}
}
