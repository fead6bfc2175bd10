package door

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// clocked is a body whose reads take their time, and whose connection obeys its
// read deadline.
type clocked struct {
	http.ResponseWriter
	now   time.Time
	until time.Time
	size  int64         // that it has
	step  int64         // bytes a read
	every time.Duration // a read
}

func (c *clocked) SetReadDeadline(t time.Time) error { c.until = t; return nil }
func (c *clocked) FlushError() error                 { return nil }
func (c *clocked) EnableFullDuplex() error           { return nil }
func (c *clocked) Close() error                      { return nil }

func (c *clocked) Read(p []byte) (int, error) {
	c.now = c.now.Add(c.every)
	if !c.until.IsZero() && c.now.After(c.until) {
		return 0, http.ErrHandlerTimeout
	}
	n := min(int64(len(p)), c.step, c.size)
	if c.size -= n; c.size == 0 {
		return int(n), io.EOF
	}
	return int(n), nil
}

// TestBodiesMayBeSlowButNotSilent: the deadline moves with what has arrived.
func TestBodiesMayBeSlowButNotSilent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, step int64
		every      time.Duration
		whole      bool
	}{
		"at once":                          {1 << 10, 1 << 10, 0, true},
		"32 MiB, 8 KiB a second":           {32 << 20, 8 << 10, time.Second, true},
		"32 MiB, 8 KiB each 1.9 seconds":   {32 << 20, 8 << 10, 1900 * time.Millisecond, true},
		"silent":                           {1 << 10, 1, 31 * time.Second, false},
		"a byte now and then":              {1 << 10, 1, 20 * time.Second, false},
		"a kibibyte a second, for ever":    {32 << 20, 1 << 10, time.Second, false},
		"small, in a moment before silent": {2, 1, 29 * time.Second, true},
	} {
		w := &clocked{now: time.Unix(1_000_000, 0), size: c.size, step: c.step, every: c.every}
		began := w.now
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body, r.ContentLength = w, -1
		again, body := receive(w, r, nil, func() time.Time { return w.now })
		n, err := io.Copy(io.Discard, again.Body)
		if whole := err == nil; whole != c.whole {
			t.Errorf("%s: %d bytes after %s, %v", name, n, w.now.Sub(began), err)
		}
		if c.whole != w.until.IsZero() {
			t.Errorf("%s: the deadline is %v", name, w.until)
		}
		if !c.whole && c.size < 1<<20 && w.now.Sub(began) > 2*time.Minute {
			t.Errorf("%s: it was waited for during %s", name, w.now.Sub(began))
		}
		asked := w.now
		body.leave()
		if left := w.until.Sub(asked); !c.whole && left != unreadWait {
			t.Errorf("%s: the rest is waited for during %s", name, left)
		}
	}
}

// TestNoBodyNoDeadline: a request without a body gets none.
func TestNoBodyNoDeadline(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(nil))
	again, body := receive(nil, r, nil, nil)
	if again != r || body != nil {
		t.Error("a body of no bytes was wrapped")
	}
	body.leave()
}
