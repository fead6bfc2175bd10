package server

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// slowBody is a body on a slow connection with a read deadline.
type slowBody struct {
	http.ResponseWriter
	now      time.Time
	deadline time.Time
	size     int64         // bytes left
	step     int64         // bytes per read
	every    time.Duration // per read
}

func (b *slowBody) SetReadDeadline(t time.Time) error { b.deadline = t; return nil }
func (b *slowBody) FlushError() error                 { return nil }
func (b *slowBody) EnableFullDuplex() error           { return nil }
func (b *slowBody) Close() error                      { return nil }

func (b *slowBody) Read(p []byte) (int, error) {
	b.now = b.now.Add(b.every)
	if !b.deadline.IsZero() && b.now.After(b.deadline) {
		return 0, http.ErrHandlerTimeout
	}
	n := min(int64(len(p)), b.step, b.size)
	if b.size -= n; b.size == 0 {
		return int(n), io.EOF
	}
	return int(n), nil
}

// TestBodyDeadlines checks that a body may be slow, but that a silence ends it.
func TestBodyDeadlines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, step int64
		every      time.Duration
		complete   bool
	}{
		"immediate":                      {1 << 10, 1 << 10, 0, true},
		"32 MiB, 8 KiB a second":         {32 << 20, 8 << 10, time.Second, true},
		"32 MiB, 8 KiB each 1.9 seconds": {32 << 20, 8 << 10, 1900 * time.Millisecond, true},
		"silent":                         {1 << 10, 1, 31 * time.Second, false},
		"a byte every 20 seconds":        {1 << 10, 1, 20 * time.Second, false},
		"a kibibyte a second":            {32 << 20, 1 << 10, time.Second, false},
		"one byte every 29 seconds":      {2, 1, 29 * time.Second, true},
	} {
		w := &slowBody{now: time.Unix(1_000_000, 0), size: c.size, step: c.step, every: c.every}
		start := w.now
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Body, r.ContentLength = w, -1
		limited, body := withDeadlines(w, r, nil, func() time.Time { return w.now })
		n, err := io.Copy(io.Discard, limited.Body)
		if complete := err == nil; complete != c.complete {
			t.Errorf("%s: %d bytes after %s, %v", name, n, w.now.Sub(start), err)
		}
		if c.complete != w.deadline.IsZero() {
			t.Errorf("%s: the deadline is %v", name, w.deadline)
		}
		if !c.complete && c.size < 1<<20 && w.now.Sub(start) > 2*time.Minute {
			t.Errorf("%s: the wait took %s", name, w.now.Sub(start))
		}
		now := w.now
		body.finish()
		if left := w.deadline.Sub(now); !c.complete && left != unreadWait {
			t.Errorf("%s: the wait for the rest is %s", name, left)
		}
	}
}

// TestEmptyBody checks that a request without a body gets no deadline.
func TestEmptyBody(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(nil))
	limited, body := withDeadlines(nil, r, nil, nil)
	if limited != r || body != nil {
		t.Error("an empty body was wrapped")
	}
	body.finish()
}
