package httpapi

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

// exchangeOf is the exchange of a POST with a body; length -1: none is announced.
func exchangeOf(body io.Reader, length int64) (*Exchange, *httptest.ResponseRecorder) {
	r := httptest.NewRequest("POST", "/", body)
	r.ContentLength = length
	w := httptest.NewRecorder()
	return &Exchange{ResponseWriter: w, Request: r}, w
}

func TestBody(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	slow := fmt.Errorf("read: %w", os.ErrDeadlineExceeded)
	for _, c := range []struct {
		name   string
		body   io.Reader
		length int64
		coding []string
		code   fault.Code // empty if the body is read
		closes bool
	}{
		{"short", strings.NewReader("{}"), 2, nil, "", false},
		{"plain coding", strings.NewReader("{}"), 2, []string{"identity, "}, "", false},
		{"plain coding in capitals", strings.NewReader("{}"), 2, []string{"Identity", "IDENTITY"}, "", false},
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
			x, w := exchangeOf(c.body, c.length)
			x.Request.Header["Content-Encoding"] = c.coding
			got, err := x.Body(limit)
			var f *fault.Error
			switch {
			case c.code == "":
				if err != nil || len(got) == 0 {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			case !errors.As(err, &f) || f.Code != c.code:
				t.Errorf("got %v, want %s", err, c.code)
			}
			if closes := w.Header().Get("Connection") == "close"; closes != c.closes || IsInterrupted(err) != c.closes {
				t.Errorf("closes the connection: %v; broken off: %v", closes, IsInterrupted(err))
			}
			if again, err2 := x.Body(limit); string(again) != string(got) || !errors.Is(err2, err) {
				t.Errorf("read again: %d bytes, %v", len(again), err2)
			}
		})
	}
}

// TestBodiesHaveABudget checks that memory grows with the received bytes, that an account gets
// half, and that the memory is released.
func TestBodiesHaveABudget(t *testing.T) {
	t.Parallel()
	const largest = 1 << 20
	all := NewBudget(1, largest, 0) // as much as two of the largest
	send := func(account string, size int, announced int64) (*Exchange, error) {
		var from io.Reader = strings.NewReader(strings.Repeat(" ", size))
		if announced >= 0 {
			from = io.MultiReader(from, iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		x, _ := exchangeOf(from, announced)
		x.Memory = all.Body(account)
		_, err := x.Body(largest)
		return x, err
	}
	first, err := send("a", largest, -1)
	if err != nil {
		t.Fatal(err)
	}
	if first.Memory.bytes < 2*largest || first.Memory.bytes > 2*(largest+1) {
		t.Errorf("%d bytes are held", first.Memory.bytes)
	}
	second, err := send("a", largest, -1)
	if f := fault.Of(err); f == nil || f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("a second one of the account: %v", f)
	}
	second.DropBody()
	if small, err := send("a", bounded.Small/2, -1); err != nil || small.Memory.bytes != 0 {
		t.Errorf("a small one: %v, %d bytes", err, small.Memory.bytes)
	}
	other, err := send("b", largest, -1)
	if err != nil {
		t.Error("another account's:", err)
	}
	third, err := send("c", largest, -1)
	if f := fault.Of(err); f == nil || f.Code != fault.ServiceUnavailable {
		t.Errorf("one more than the node has room for: %v", f)
	}
	for _, x := range []*Exchange{first, other, third} {
		x.DropBody()
	}
	if announced, err := send("a", 10, largest); err == nil || announced.Memory.bytes != 0 {
		t.Errorf("%v, and %d bytes for a length alone", err, announced.Memory.bytes)
	}
	if all.held != 0 || len(all.by) != 0 {
		t.Errorf("%d bytes are left, of %v", all.held, all.by)
	}
}

// TestAFileOfTheLargestSizeFits checks that an account may have one file of the largest size even
// if half of the budget is less, and that its bodies still get half of the budget.
func TestAFileOfTheLargestSizeFits(t *testing.T) {
	t.Parallel()
	const largest = 100 << 20
	b := NewBudget(115<<20, 32<<20, largest)
	file, body := b.File("a"), b.Body("a")
	if err := file.Grow(largest + 1); err != nil {
		t.Error(err)
	}
	if err := body.Grow(1); err == nil {
		t.Error("its bodies get room beside the file")
	}
	file.Release()
	for range 2 {
		if err := body.Grow(16 << 20); err != nil {
			t.Error(err)
		}
	}
	if err := body.Grow(1 << 20); err == nil {
		t.Errorf("%d bytes of an account's bodies of %d", body.bytes, b.limit)
	}
}
