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

// TestGetReadsOwnFiles checks that Get reads the gateway's own files with OpenOwnFile, although their
// address is not public.
func TestGetReadsOwnFiles(t *testing.T) {
	t.Parallel()
	g := egress.New(nil)
	errDatabase := errors.New("the database is unavailable")
	g.OpenOwnFile = func(_ context.Context, address string) (io.ReadCloser, int64, bool, error) {
		name, isOwn := strings.CutPrefix(address, "http://127.0.0.1/media/")
		switch {
		case name == "broken":
			return nil, 0, true, errDatabase
		case !isOwn || name == "gone":
			return nil, 0, isOwn, nil
		}
		return io.NopCloser(strings.NewReader(name)), int64(len(name)), true, nil
	}
	errMemory := errors.New("no memory")
	for name, want := range map[string]string{
		"short": "", "exactly-10": "", "exactly-11c": "larger than the 10 bytes", "gone": "There is no file", "broken": errDatabase.Error(),
	} {
		content, err := g.Get(t.Context(), "http://127.0.0.1/media/"+name, egress.Limits{Size: 10, Timeout: time.Second})
		var addressErr *egress.AddressError
		switch {
		case want == "" && (err != nil || string(content.Body) != name),
			want != "" && (err == nil || !strings.Contains(err.Error(), want)),
			want != "" && errors.As(err, &addressErr) == (name == "broken"):
			t.Errorf("Get of the file %s = %+v, %v, want error %q", name, content, err, want)
		}
	}
	if _, err := g.Get(t.Context(), "http://127.0.0.1/other", egress.Limits{Size: 10, Timeout: time.Second}); err == nil {
		t.Error("Get of an address outside of the media path succeeded, want an error")
	}
	long := strings.Repeat("x", 1<<20)
	if _, err := g.Get(t.Context(), "http://127.0.0.1/media/"+long, egress.Limits{Size: 2 << 20, Timeout: time.Second,
		Grow: func(int64) error { return errMemory }}); !errors.Is(err, errMemory) {
		t.Errorf("Get with a failing Grow: error %v, want %v", err, errMemory)
	}
}

// TestGet checks that Get returns the document, or an error for the user, for each kind of
// response.
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
		"exactly the limit": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1000)) },
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
		"not found":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "HTTP 404", false},
		"no content":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "HTTP 204", false},
		"partial":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(206) }, "HTTP 206", false},
		"not modified":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) }, "redirect", false},
		"compressed":    {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") }, "compression", false},
		"never answers": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "no complete answer in time", false},
		"one byte at a time": {func(w http.ResponseWriter, r *http.Request) {
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
		"body ends early": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "x")
			panic(http.ErrAbortHandler)
		}, "closed before the answer was complete", false},
		"no response": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"closed before the answer was complete", false},
		"oversized header": {func(w http.ResponseWriter, _ *http.Request) {
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
			start := time.Now()
			doc, err := egress.New(loopback).Get(t.Context(), s.URL+"/file", limits)
			var addressErr *egress.AddressError
			switch {
			case c.ok && (err != nil || string(doc.Body) != c.want):
				t.Errorf("Get = %v, %v, want the document %q", doc, err, c.want)
			case !c.ok && (!errors.As(err, &addressErr) || !strings.Contains(addressErr.Text, c.want)):
				t.Errorf("Get: error %v, want an AddressError with %q", err, c.want)
			case time.Since(start) > 20*time.Second:
				t.Errorf("Get took %v, want at most 20s", time.Since(start))
			case name == "a document" && doc.Type != "image/png":
				t.Errorf("Get: type %q, want image/png", doc.Type)
			}
		})
	}
}

func TestGetExplainsFailedConnections(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closedURL := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	defer secure.Close()
	g := egress.New(loopback)
	g.Resolver = newNameServer(map[string][]string{"here.example": {"127.0.0.1"}}).resolver()
	for address, want := range map[string]string{
		closedURL:                 "the connection was refused",
		"http://nowhere.example/": "no public address",
		strings.Replace(plain.URL, "http:", "https:", 1): "does not speak TLS",
		secure.URL: "certificate is not valid",
		"https://here.example:" + port(t, secure): "certificate is not valid",
		"http://10.0.0.1/":                        "not public",
	} {
		_, err := g.Get(t.Context(), address, egress.Limits{Size: 10, Timeout: 10 * time.Second})
		var addressErr *egress.AddressError
		if !errors.As(err, &addressErr) || !strings.Contains(addressErr.Text, want) {
			t.Errorf("Get(%s): error %v, want an AddressError with %q", address, err, want)
		}
	}
}

// TestGetReturnsContextError checks that a canceled Get returns the error of its context and not an
// error for the user.
func TestGetReturnsContextError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() }))
	defer s.Close()
	_, err := egress.New(loopback).Get(ctx, s.URL, egress.Limits{Size: 10, Timeout: 30 * time.Second})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled Get: error %v, want %v", err, context.Canceled)
	}
}
