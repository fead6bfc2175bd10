package httpapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
)

// TestCutAnswers checks that a panic after the first byte cuts the connection, so that clients do
// not take the answer for complete, and is logged unless it is http.ErrAbortHandler.
func TestCutAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		panic  any
		logged bool
	}{
		{"ours", "boom", true},
		{"asked for", http.ErrAbortHandler, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			observed := make(chan int, 1)
			server := httptest.NewServer(New(Options{
				Log:     slog.New(slog.NewTextHandler(&log, nil)),
				Observe: func(_ string, status int, _ time.Duration) { observed <- status },
			}, []Route{{"GET /half", func(x *Exchange) error {
				_, _ = io.WriteString(x, "half")
				_ = x.FlushError()
				panic(c.panic)
			}}}))
			defer server.Close()
			got, err := http.Get(server.URL + "/half")
			if err != nil {
				t.Fatal(err)
			}
			defer got.Body.Close()
			if body, err := io.ReadAll(got.Body); err == nil {
				t.Errorf("the answer looks whole: %q", body)
			}
			if status := <-observed; status != 200 {
				t.Errorf("observed status %d", status)
			}
			if logged := strings.Contains(log.String(), got.Header.Get("X-Request-Id")); logged != c.logged {
				t.Errorf("logged: %v: %s", logged, log.String())
			}
		})
	}
}

// TestPanicsAreAnsweredInTheShapeOfTheFamily checks that a panic before the first byte is a
// readable 503 and is logged once, also without a route.
func TestPanicsAreAnsweredInTheShapeOfTheFamily(t *testing.T) {
	t.Parallel()
	for path, begins := range map[string]string{
		"/v1/chat/completions": `{"error":{"message":"`,
		"/native/v1/messages":  `{"type":"error","error":{"type":"overloaded_error","message":"`,
	} {
		var log bytes.Buffer
		o := Options{Log: slog.New(slog.NewTextHandler(&log, nil))}
		for name, h := range map[string]http.Handler{
			"route": New(o, []Route{{"POST " + path, func(*Exchange) error { panic("boom") }}}),
			"wrap":  Wrap(o, path, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })),
		} {
			log.Reset()
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
			if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), begins) {
				t.Errorf("%s, %s: %d %s", path, name, w.Code, w.Body)
			}
			for _, part := range []string{"level=ERROR", w.Header().Get("X-Request-Id"), "endpoint=" + path, "panic=boom", "panic_test.go"} {
				if !strings.Contains(log.String(), part) {
					t.Errorf("%s, %s: no %q in the log: %s", path, name, part, &log)
				}
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%s, %s: %d lines: %s", path, name, n, &log)
			}
		}
	}
}

// TestLevelOfFailures checks that only failures of ours are logged as errors, also where a provider's
// failure is answered with the code of ours.
func TestLevelOfFailures(t *testing.T) {
	t.Parallel()
	drained := fault.New(fault.UpstreamUnavailable, "drained").WithCause(errors.New("drained"))
	for level, err := range map[string]error{
		"level=ERROR": errors.New("disk"),
		"level=INFO":  fault.New(fault.ServiceUnavailable, "drained").WithCause(drained),
	} {
		var log bytes.Buffer
		h := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, []Route{{"GET /x", func(*Exchange) error { return err }}})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
		if !strings.Contains(log.String(), level) {
			t.Errorf("want %s: %s", level, &log)
		}
	}
}

// TestAbort checks that an aborted request gets no response.
func TestAbort(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, []Route{
		{"GET /x", func(x *Exchange) error {
			x.Abort(errors.New("lost"))
			return nil
		}},
	})
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("it ends with %v", err)
			}
		}()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/x", nil))
	}()
	if w.Body.Len() > 0 || strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "request cut off") ||
		!strings.Contains(log.String(), "cause=lost") {
		t.Errorf("answered %q, logged %s", w.Body, &log)
	}
}

// TestSurprisesAreLogged checks that a fault of ours is logged once, even if its caller has left.
// The caller's leaving is not logged.
func TestSurprisesAreLogged(t *testing.T) {
	t.Parallel()
	left, leave := context.WithCancel(t.Context())
	leave()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		cause  error
		logged int
	}{
		{"ours", t.Context(), errors.New("the disk is full"), 1},
		{"ours, and the caller has left", left, errors.New("the disk is full"), 1},
		{"the caller has left", left, fmt.Errorf("read: %w", context.Canceled), 0},
		{"cancelled by ourselves", t.Context(), fmt.Errorf("read: %w", context.Canceled), 1},
	} {
		var log bytes.Buffer
		h := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil))}, []Route{
			{"GET /x", func(*Exchange) error { return fault.Unavailable(c.cause) }},
		})
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil).WithContext(c.ctx))
		if n := strings.Count(log.String(), "request failed"); n != c.logged {
			t.Errorf("%s: %d lines, want %d: %s", c.name, n, c.logged, &log)
		}
	}
}
