package api

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestCutAnswers checks that a panic after the first byte cuts the connection,
// so that nobody takes the answer for whole, and is logged unless it was asked
// for.
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
			d := &desk{Options: Options{
				Log: slog.New(slog.NewTextHandler(&log, nil)), Now: time.Now,
				Observe: func(_ string, status int, _ time.Duration) { observed <- status },
			}}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				x := &exchange{w: &answer{ResponseWriter: w}, r: r, request: "req_1", received: time.Now()}
				defer d.seeOut(x)
				_, _ = io.WriteString(x.w, "half")
				_ = x.w.FlushError()
				panic(c.panic)
			}))
			defer server.Close()
			got, err := http.Get(server.URL)
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
			if logged := strings.Contains(log.String(), "req_1"); logged != c.logged {
				t.Errorf("logged: %v: %s", logged, log.String())
			}
		})
	}
}

// TestPanicsAreAnsweredInTheShapeOfTheFamily: a panic before the first byte is
// a 503 that the client can read.
func TestPanicsAreAnsweredInTheShapeOfTheFamily(t *testing.T) {
	t.Parallel()
	for path, begins := range map[string]string{
		"/v1/chat/completions": `{"error":{"message":"`,
		"/native/v1/messages":  `{"type":"error","error":{"type":"overloaded_error","message":"`,
	} {
		d := &desk{Options: Options{Log: slog.New(slog.DiscardHandler), Now: time.Now, Observe: func(string, int, time.Duration) {}}}
		w := httptest.NewRecorder()
		func() {
			x := &exchange{w: &answer{ResponseWriter: w}, r: httptest.NewRequest(http.MethodPost, path, nil), received: time.Now()}
			defer d.seeOut(x)
			panic("boom")
		}()
		if w.Code != http.StatusServiceUnavailable || !strings.HasPrefix(w.Body.String(), begins) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
