package httpapi

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/fault"
)

// named returns routes that answer with their pattern and the id in the path.
func named(patterns ...string) []Route {
	var routes []Route
	for _, pattern := range patterns {
		routes = append(routes, Route{pattern, func(x *Exchange) error {
			_, _ = io.WriteString(x, pattern+" "+x.PathID())
			return nil
		}})
	}
	return routes
}

// TestRoutes checks that a pattern matches the segments of a path, and that no path leads to
// another path.
func TestRoutes(t *testing.T) {
	t.Parallel()
	h := New(Options{Log: slog.New(slog.DiscardHandler)},
		named("GET /", "GET /a", "GET /a/{id}", "POST /a/{id}/b", "PUT /a/{id}/b", "GET /a/fixed", "/any", "GET /c/{id...}",
			"POST /c/{id...}:go", "POST /c/{id...}:stop"))
	for _, c := range []struct {
		method, path string
		status       int
		want         string // the answer, or Allow
	}{
		{"GET", "/a", 200, "GET /a "}, {"HEAD", "/a", 200, "GET /a "}, {"GET", "/a?x=//", 200, "GET /a "}, {"GET", "/%61", 200, "GET /a "},
		{"GET", "/a/x", 200, "GET /a/{id} x"}, {"GET", "/a/%25%20%ff%00", 200, "GET /a/{id} % \xff\x00"},
		{"GET", "/a/{id}", 200, "GET /a/{id} {id}"}, {"GET", "/a/fixed", 200, "GET /a/fixed "}, {"GET", "/a/...", 200, "GET /a/{id} ..."},
		{"POST", "/a/x/b", 200, "POST /a/{id}/b x"}, {"POST", "/a%2Fx%2Fb", 200, "POST /a/{id}/b x"},
		{"GET", "/c/x/y", 200, "GET /c/{id...} x/y"}, {"GET", "/c/x:y", 200, "GET /c/{id...} x:y"},
		{"POST", "/c/x/y:go", 200, "POST /c/{id...}:go x/y"}, {"POST", "/c/x:y:stop", 200, "POST /c/{id...}:stop x:y"},
		{"GET", "/c/x:go", 405, "POST"}, {"POST", "/c/x", 405, "GET, HEAD"}, {"POST", "/c/x:y", 404, ""},
		{"BREW", "/any", 200, "/any "}, {"CONNECT", "/any", 200, "/any "},
		{"PUT", "/a", 405, "GET, HEAD"}, {"OPTIONS", "/a", 405, "GET, HEAD"}, {"CONNECT", "/a", 405, "GET, HEAD"},
		{"HEAD", "/a/x/b", 405, "POST, PUT"}, {"BREW", "/a/x/b", 405, "POST, PUT"}, {"POST", "/a/fixed", 405, "GET, HEAD"},
		{"GET", "/", 200, "GET / "}, {"POST", "/", 405, "GET, HEAD"},
		{"GET", "/b", 404, ""}, {"GET", "/a/", 404, ""}, {"GET", "/a//b", 404, ""}, {"POST", "/a/x/b/", 404, ""},
		{"GET", "/a/x/c", 404, ""}, {"GET", "//a", 404, ""}, {"GET", "/./a", 404, ""}, {"GET", "/b/../a", 404, ""}, {"GET", "/a/..", 404, ""},
		{"GET", "/a/%2e", 404, ""}, {"GET", "/a/x%2Fy", 404, ""}, {"GET", "/a%2F", 404, ""}, {"GET", "/any/", 404, ""}, {"GET", "*", 404, ""},
		{"OPTIONS", "*", 404, ""}, {"CONNECT", "elsewhere.example:443", 404, ""}, {"GET", "http://elsewhere.example", 404, ""},
		{"GET", "http://elsewhere.example/a", 200, "GET /a "}, {"CONNECT", "//a", 404, ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		got := w.Body.String()
		if c.status != 200 {
			got = w.Header().Get("Allow")
		}
		if w.Code != c.status || got != c.want {
			t.Errorf("%s %s: %d %q, want %d %q", c.method, c.path, w.Code, got, c.status, c.want)
		}
		code := map[int]fault.Code{404: fault.NotFound, 405: fault.MethodNotAllowed}[c.status]
		var said struct{ Error struct{ Code fault.Code } }
		if code != "" && (json.Unmarshal(w.Body.Bytes(), &said) != nil || said.Error.Code != code) {
			t.Errorf("%s %s: %s, want %s", c.method, c.path, w.Body, code)
		}
		if id := w.Header().Get("X-Request-Id"); !strings.HasPrefix(id, "req_") || w.Header().Get("Request-Id") != id {
			t.Errorf("%s %s: headers %v", c.method, c.path, w.Header())
		}
	}
}

// TestEnter checks that Enter runs before the path is looked at.
func TestEnter(t *testing.T) {
	t.Parallel()
	var ends []string
	h := New(Options{
		Log:     slog.New(slog.DiscardHandler),
		Enter:   func(x *Exchange) error { return fault.New(fault.InvalidAPIKey, "No.") },
		Observe: func(endpoint string, status int, _ time.Duration) { ends = append(ends, endpoint) },
	}, named("GET /a"))
	for _, path := range []string{"/a", "/b"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPut, path, nil))
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if got := strings.Join(ends, " "); got != "unknown unknown" {
		t.Errorf("observed %s", got)
	}
}

// TestObserve checks that an endpoint is a route's path, and that all other paths share one.
func TestObserve(t *testing.T) {
	t.Parallel()
	var seen []string
	now := time.Unix(1_000_000, 0)
	h := New(Options{
		Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { now = now.Add(time.Second); return now },
		Observe: func(endpoint string, status int, took time.Duration) {
			seen = append(seen, endpoint+" "+http.StatusText(status)+" "+took.String())
		},
	}, named("GET /a/{id}"))
	for _, path := range []string{"GET /a/x", "PUT /a/x", "GET /a/x/y"} {
		method, path, _ := strings.Cut(path, " ")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	}
	if got := strings.Join(seen, ", "); got != "/a/{id} OK 1s, unknown Method Not Allowed 1s, unknown Not Found 1s" {
		t.Error(got)
	}
}
