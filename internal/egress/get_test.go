package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/egress"
)

// TestGetReadsOwnFiles reads files of the service itself without a connection.
func TestGetReadsOwnFiles(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	broken := errors.New("the database is away")
	g.OpenOwn = func(_ context.Context, address string) (io.ReadCloser, int64, bool, error) {
		rest, ours := strings.CutPrefix(address, "http://127.0.0.1/media/")
		switch {
		case rest == "broken":
			return nil, 0, true, broken
		case !ours || rest == "gone":
			return nil, 0, ours, nil
		}
		return io.NopCloser(strings.NewReader(rest)), int64(len(rest)), true, nil
	}
	full := errors.New("no memory")
	for address, want := range map[string]string{
		"short": "", "exactly-10": "", "exactly-11c": "larger than the 10 bytes", "gone": "There is no file", "broken": broken.Error(),
	} {
		f, err := g.Get(t.Context(), "http://127.0.0.1/media/"+address, egress.Limits{Size: 10, Timeout: time.Second})
		var refusal *egress.AddressError
		switch {
		case want == "" && (err != nil || string(f.Body) != address),
			want != "" && (err == nil || !strings.Contains(err.Error(), want)),
			want != "" && errors.As(err, &refusal) == (address == "broken"):
			t.Errorf("%s: %+v, %v", address, f, err)
		}
	}
	if _, err := g.Get(t.Context(), "http://127.0.0.1/other", egress.Limits{Size: 10, Timeout: time.Second}); err == nil {
		t.Error("an address without a file was fetched")
	}
	long := strings.Repeat("x", 1<<20)
	if _, err := g.Get(t.Context(), "http://127.0.0.1/media/"+long, egress.Limits{Size: 2 << 20, Timeout: time.Second,
		Grow: func(int64) error { return full }}); !errors.Is(err, full) {
		t.Errorf("Grow failed: got %v", err)
	}
}

// TestGet checks the error shown to the user for each kind of answer.
func TestGet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string // the document, or a part of the error
		ok    bool
	}{
		"a document": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = fmt.Fprintf(w, "%s %s", r.Method, r.URL.Path)
		}, "GET /file", true},
		"just the limit": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) },
			strings.Repeat("x", 1000), true},
		"over the limit, announced": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1001")
			_, _ = io.WriteString(w, strings.Repeat("x", 1001))
		}, "larger than the 1000 bytes", false},
		"over the limit, unannounced": {func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 500)); err != nil {
					return
				}
				w.(http.Flusher).Flush()
			}
		}, "larger than the 1000 bytes", false},
		"missing":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "HTTP 404", false},
		"no content":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "HTTP 204", false},
		"part":          {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, "HTTP 206", false},
		"not modified":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "redirect", false},
		"compressed":    {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") }, "compression", false},
		"never answers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no complete answer in time", false},
		"drips": {func(w http.ResponseWriter, r *http.Request) {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = io.WriteString(w, "x")
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}, "no complete answer in time", false},
		"breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "x")
			panic(http.ErrAbortHandler)
		}, "closed before the answer was complete", false},
		"closes early": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"closed before the answer was complete", false},
		"a head without end": {func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("y", 100))
			}
		}, "could not be read as HTTP", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(c.serve)
			defer s.Close()
			limits := egress.Limits{Size: 1000, Timeout: 30 * time.Second}
			if strings.Contains(c.want, "in time") {
				limits.Timeout = 300 * time.Millisecond
			}
			began := time.Now()
			doc, err := egress.New(loopback).Get(t.Context(), s.URL+"/file", limits)
			var refusal *egress.AddressError
			switch {
			case c.ok && (err != nil || string(doc.Body) != c.want):
				t.Errorf("%v, %v", doc, err)
			case !c.ok && (!errors.As(err, &refusal) || !strings.Contains(refusal.Text, c.want)):
				t.Errorf("%v, want %q", err, c.want)
			case time.Since(began) > 20*time.Second:
				t.Error("Get took too long")
			case name == "a document" && doc.Type != "image/png":
				t.Errorf("type %q", doc.Type)
			}
		})
	}
}

func TestGetExplainsWhyThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	defer secure.Close()
	g := egress.New(loopback)
	g.Resolver = serveNames(map[string][]string{"here.example": {"127.0.0.1"}}).resolver()
	for address, want := range map[string]string{
		dead:                      "the connection was refused",
		"http://nowhere.example/": "no public address",
		strings.Replace(plain.URL, "http:", "https:", 1): "does not speak TLS",
		secure.URL: "certificate is not valid",
		"https://here.example:" + port(t, secure): "certificate is not valid",
		"http://10.0.0.1/":                        "not public",
	} {
		_, err := g.Get(t.Context(), address, egress.Limits{Size: 10, Timeout: 10 * time.Second})
		var refusal *egress.AddressError
		if !errors.As(err, &refusal) || !strings.Contains(refusal.Text, want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// TestGetEndsWithItsCaller checks that Get returns the error of its context and not an error for
// the user.
func TestGetEndsWithItsCaller(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }))
	defer s.Close()
	_, err := egress.New(loopback).Get(ctx, s.URL, egress.Limits{Size: 10, Timeout: 30 * time.Second})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
