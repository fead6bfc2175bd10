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

// exchangeOf returns the exchange of a POST with a body. If length is -1, the request has no
// Content-Length.
func exchangeOf(body io.Reader, length int64) (*Exchange, *httptest.ResponseRecorder) {
	r := httptest.NewRequest("POST", "/", body)
	r.ContentLength = length
	w := httptest.NewRecorder()
	return &Exchange{ResponseWriter: w, Request: r}, w
}

// TestBody checks the error and the fate of the connection for each kind of body.
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
		{"Content-Length too long", iotest.ErrReader(errors.New("was read")), limit + 1, nil, fault.RequestTooLarge, false},
		{"too long", strings.NewReader(strings.Repeat(" ", limit+1)), -1, nil, fault.RequestTooLarge, false},
		{"compressed", strings.NewReader("x"), 1, []string{"identity", "br"}, fault.InvalidEncoding, false},
		{"slow", iotest.ErrReader(slow), 10, nil, fault.InvalidJSON, true},
		{"interrupted", iotest.ErrReader(io.ErrUnexpectedEOF), 10, nil, fault.InvalidJSON, true},
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
					t.Errorf("Body returned %d bytes and error %v, want the body", len(got), err)
				}
			case !errors.As(err, &f) || f.Code != c.code:
				t.Errorf("Body: %v, want %s", err, c.code)
			}
			if closes := w.Header().Get("Connection") == "close"; closes != c.closes || IsInterrupted(err) != c.closes {
				t.Errorf("closes the connection %v and interrupted %v, want %v", closes, IsInterrupted(err), c.closes)
			}
			if again, err2 := x.Body(limit); string(again) != string(got) || !errors.Is(err2, err) {
				t.Errorf("the second Body returned %d bytes and error %v, want the first result", len(again), err2)
			}
		})
	}
}

// TestBudget checks that bodies reserve memory as bytes arrive, that an account gets at most half of the
// budget, and that DropBody releases the memory.
func TestBudget(t *testing.T) {
	t.Parallel()
	const largest = 1 << 20
	budget := NewBudget(1, largest, 0) // the minimum, for two bodies of the largest size
	send := func(account string, size int, announced int64) (*Exchange, error) {
		var from io.Reader = strings.NewReader(strings.Repeat(" ", size))
		if announced >= 0 {
			from = io.MultiReader(from, iotest.ErrReader(io.ErrUnexpectedEOF))
		}
		x, _ := exchangeOf(from, announced)
		x.Memory = budget.Body(account)
		_, err := x.Body(largest)
		return x, err
	}
	first, err := send("a", largest, -1)
	if err != nil {
		t.Fatal(err)
	}
	if first.Memory.bytes < 2*largest || first.Memory.bytes > 2*(largest+1) {
		t.Errorf("the reservation has %d bytes, want two copies of the body", first.Memory.bytes)
	}
	second, err := send("a", largest, -1)
	if f := fault.Of(err); f == nil || f.Code != fault.ServiceUnavailable || f.RetryAfter <= 0 {
		t.Errorf("a second large body of the account: %v, want %s", f, fault.ServiceUnavailable)
	}
	second.DropBody()
	if small, err := send("a", bounded.Small/2, -1); err != nil || small.Memory.bytes != 0 {
		t.Errorf("a small body: error %v and %d reserved bytes, want neither", err, small.Memory.bytes)
	}
	other, err := send("b", largest, -1)
	if err != nil {
		t.Errorf("a body of another account: %v", err)
	}
	third, err := send("c", largest, -1)
	if f := fault.Of(err); f == nil || f.Code != fault.ServiceUnavailable {
		t.Errorf("a body beyond the budget: %v, want %s", f, fault.ServiceUnavailable)
	}
	for _, x := range []*Exchange{first, other, third} {
		x.DropBody()
	}
	if announced, err := send("a", 10, largest); err == nil || announced.Memory.bytes != 0 {
		t.Errorf("an interrupted body: error %v and %d reserved bytes, want an error and none", err, announced.Memory.bytes)
	}
	if budget.held != 0 || len(budget.byAccount) != 0 {
		t.Errorf("%d bytes are still reserved, by %v", budget.held, budget.byAccount)
	}
}

// TestLargestFile checks that an account may reserve a file of the largest size even if half of the budget
// is less, and that its bodies get half of the budget.
func TestLargestFile(t *testing.T) {
	t.Parallel()
	const largest = 100 << 20
	b := NewBudget(115<<20, 32<<20, largest)
	file, body := b.File("a"), b.Body("a")
	if err := file.Grow(largest + 1); err != nil {
		t.Error(err)
	}
	if err := body.Grow(1); err == nil {
		t.Error("a body got memory beside the file")
	}
	file.Release()
	for range 2 {
		if err := body.Grow(16 << 20); err != nil {
			t.Error(err)
		}
	}
	if err := body.Grow(1 << 20); err == nil {
		t.Errorf("the account's bodies reserved %d bytes of %d, want an error above half", body.bytes, b.limit)
	}
}
