package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/admin"
	"tollgate/internal/catalog"
	"tollgate/internal/contract"
	"tollgate/internal/fault"
	"tollgate/internal/gatewaytest/scene"
	"tollgate/internal/httpapi"
)

// ask sends one request to a handler in memory.
func ask(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// answerWith returns a handler that answers with name.
func answerWith(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(name)) })
}

// state is the state of the parts that readiness checks.
type state struct {
	database, writable error
	revision           int64
	noMedia            bool
}

func (s state) readiness() *readiness {
	return &readiness{database: func(context.Context) error { return s.database }, writable: func() error { return s.writable },
		catalog: func() *catalog.Snapshot { return &catalog.Snapshot{Revision: s.revision} },
		media:   func() (time.Time, bool) { return time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC), s.noMedia }}
}

func TestFrontSendsToSurfaces(t *testing.T) {
	t.Parallel()
	ready := state{revision: 1}.readiness()
	log := slog.New(slog.DiscardHandler)
	open := newFront(surfaces{api: answerWith("api"), console: answerWith("console"), admin: answerWith("admin"), media: answerWith("media"),
		metrics: answerWith("metrics"), ready: ready, token: httpapi.NewOperatorToken("secret"), log: log})
	shut := newFront(surfaces{api: answerWith("api"), admin: answerWith("admin"), metrics: answerWith("metrics"), ready: ready, log: log})
	private := newFront(surfaces{console: answerWith("console"), ready: ready, log: log})
	for _, c := range []struct {
		front        *front
		path, header string
		status       int
		want         string
	}{
		{open, "/v1/models", "", 200, "api"},
		{open, "/native/v1/messages", "", 200, "api"},
		{open, "/", "", 302, "/console"},
		{open, "/console", "", 200, "console"},
		{open, "/console/keys", "", 200, "console"},
		{open, "/consoles", "", 200, "api"},
		{private, "/", "", 302, "/console/operator"},
		{private, "/console/operator", "", 200, "console"},
		{private, "/v1/models", "", 404, "not_found"},
		{shut, "/", "", 200, "api"},
		{shut, "/console", "", 200, "api"},
		{open, "/admin/v1", "", 200, "admin"},
		{open, "/admin/v1/accounts", "", 200, "admin"},
		{open, "/admin/v10", "", 200, "api"},
		{open, "/media/x.png", "", 200, "media"},
		{shut, "/media/x.png", "", 200, "api"},
		{open, "/healthz", "", 200, `"ok"`},
		{open, "/readyz", "", 200, `"ok"`},
		{open, "/metrics", "", 401, "invalid_api_key"},
		{open, "/metrics", "Bearer wrong", 401, "invalid_api_key"},
		{open, "/metrics", "secret", 401, "invalid_api_key"},
		{open, "/metrics", "Bearer secret", 200, "metrics"},
		{open, "/metrics", "bearer secret", 200, "metrics"},
		{shut, "/metrics", "Bearer ", 200, "api"},
	} {
		got := ask(c.front, "GET", c.path, "Authorization", c.header)
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s with %q: %d %s, want %d %s", c.path, c.header, got.Code, got.Body, c.status, c.want)
		}
		if c.want != "api" && c.want != "admin" && c.want != "console" && !strings.HasPrefix(got.Header().Get("x-request-id"), "req_") {
			t.Errorf("%s has no request id", c.path)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	away := errors.New("password=hunter2 refused")
	for _, c := range []struct {
		name string
		state
		stopping bool
		fault    string // the part at fault
	}{
		{"ready", state{nil, nil, 1, false}, false, ""},
		{"database away", state{away, away, 1, false}, false, "database"},
		{"disk full", state{nil, away, 1, true}, false, "database"},
		{"stopping", state{nil, nil, 1, false}, true, "process"},
		{"no catalog", state{nil, nil, 0, false}, false, "catalog"},
		{"media store down", state{nil, nil, 1, true}, false, ""}, // chat needs no media store
	} {
		ready := c.readiness()
		ready.stopping.Store(c.stopping)
		f := newFront(surfaces{ready: ready, log: slog.New(slog.DiscardHandler)})
		got := ask(f, "GET", "/readyz")
		var body struct {
			Status   string
			Faults   map[string]string
			Warnings map[string]string
		}
		if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := http.StatusOK
		if c.fault != "" {
			want = http.StatusServiceUnavailable
		}
		if _, ok := body.Faults[c.fault]; got.Code != want || ok != (c.fault != "") || len(body.Faults) > 1 {
			t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
		}
		if warning := body.Warnings["media"]; strings.Contains(warning, "since 2026-11-28T03:00:00Z") != c.noMedia || len(body.Warnings) > 1 {
			t.Errorf("%s: warnings %v", c.name, body.Warnings)
		}
		if strings.Contains(got.Body.String(), "hunter2") {
			t.Errorf("%s: shows the cause: %s", c.name, got.Body)
		}
		if alive := ask(f, "GET", "/healthz"); alive.Code != 200 {
			t.Errorf("%s: healthz answers %d", c.name, alive.Code)
		}
		if post := ask(f, "POST", "/readyz"); post.Code != 405 || post.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: POST answers %d", c.name, post.Code)
		}
	}
}

// TestPanicsAreLoggedOnce checks that a panic in any surface is answered 503 and logged once, as an
// error with its stack.
func TestPanicsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	logs := new(scene.Buffer)
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") })
	log := slog.New(slog.NewTextHandler(logs, nil))
	parts := surfaces{media: broken, metrics: broken, token: httpapi.NewOperatorToken("secret"), log: log,
		admin: admin.New(admin.Options{Token: httpapi.NewOperatorToken("secret"), Log: log}), // without a database
		ready: &readiness{database: func(context.Context) error { panic("boom") }}}
	for i, path := range []string{"/media/x.png", "/metrics", "/readyz", "/admin/v1/accounts"} {
		got := ask(newFront(parts), "GET", path, "Authorization", "Bearer secret")
		if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `"code":"service_unavailable"`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
		if id := got.Header().Get("X-Request-Id"); id == "" || logs.Count(id) != 1 {
			t.Errorf("%s: the log has %d lines with %q", path, logs.Count(id), id)
		}
		if logs.Count("level=ERROR msg=\"request panicked\"") != i+1 || logs.Count("stack=") != i+1 || logs.Count("\n") != i+1 {
			t.Errorf("%s: the log has %s", path, logs)
		}
	}
	if got := ask(onlyMetrics(log, broken), "GET", "/metrics"); got.Code != http.StatusServiceUnavailable {
		t.Errorf("metrics_listen: %d %s", got.Code, got.Body)
	}
}

// wholeSurfaces returns the surfaces of a process with one address.
func wholeSurfaces(t *testing.T) surfaces {
	t.Helper()
	pages, err := contract.NewSite(func(name string) string { return "/console/static/" + name }, fault.Explain)
	if err != nil {
		t.Fatal(err)
	}
	return surfaces{api: answerWith("api"), admin: answerWith("admin"), console: answerWith("console"), pages: pages,
		token: httpapi.NewOperatorToken("secret"), log: slog.New(slog.DiscardHandler)}
}

// TestContractsAreWhereTheirAPIsAre requests the contracts and the first page at each address of a
// process.
func TestContractsAreWhereTheirAPIsAre(t *testing.T) {
	t.Parallel()
	whole := wholeSurfaces(t)
	whole.base = "https://api.example.com"
	whole.signIns = func(context.Context) (users, operators bool) { return false, false }
	public, private := whole.split()
	tokenless := whole
	tokenless.token = nil
	for _, c := range []struct {
		name         string
		of           surfaces
		path, accept string
		status       int
		want         string
	}{
		{"whole", whole, "/openapi.json", "", 200, `"openapi":"3.1.0"`},
		{"whole", whole, "/docs", "", 200, "/v1/chat/completions"},
		{"whole", whole, "/admin/openapi.json", "", 200, `/admin/v1/accounts`},
		{"whole", whole, "/admin/docs", "", 200, "/admin/v1/accounts"},
		{"whole", whole, "/", "text/html", 302, "/console"},
		{"public", public, "/openapi.json", "", 200, `"openapi":"3.1.0"`},
		{"public", public, "/admin/openapi.json", "", 200, "api"}, // an unknown path
		{"public", public, "/admin/docs", "", 200, "api"},
		{"private", private, "/openapi.json", "", 404, "not_found"},
		{"private", private, "/docs", "", 404, "not_found"},
		{"private", private, "/admin/docs", "", 200, "/admin/v1/accounts"},
		{"private", private, "/", "text/html", 302, "/console/operator"},
		{"no token", tokenless, "/admin/docs", "", 200, "api"},
		{"no token", tokenless, "/", "text/html,*/*", 200, "<code class=\"break\">https://api.example.com/native</code>"},
		{"no token", tokenless, "/", "", 200, `"v1":"https://api.example.com/v1"`},
	} {
		got := ask(newFront(c.of), "GET", c.path, "Accept", c.accept)
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s, %s: %d %.300s, want %d %s", c.name, c.path, got.Code, got.Body, c.status, c.want)
		}
		page := strings.HasPrefix(got.Header().Get("Content-Type"), "text/html") && got.Code == 200
		if policy := got.Header().Get("Content-Security-Policy"); page && !strings.HasPrefix(policy, "default-src 'none'; style-src 'self'") {
			t.Errorf("%s, %s: the policy is %q", c.name, c.path, policy)
		}
		if page && (strings.Contains(got.Body.String(), "<script") || strings.Contains(got.Body.String(), "style=")) {
			t.Errorf("%s, %s: the page has an inline script or style", c.name, c.path)
		}
	}
}

// TestPagesEndWithoutSlash checks that a page's address with a trailing slash redirects to the
// page, on the addresses with the page, and nowhere else.
func TestPagesEndWithoutSlash(t *testing.T) {
	t.Parallel()
	whole := wholeSurfaces(t)
	public, private := whole.split()
	for _, c := range []struct {
		name         string
		of           surfaces
		method, path string
		status       int
		want         string // the target of the redirect, or the answer
	}{
		{"whole", whole, "GET", "/docs/", 308, "/docs"},
		{"whole", whole, "HEAD", "/docs/", 308, "/docs"},
		{"whole", whole, "GET", "/docs//", 308, "/docs"},
		{"whole", whole, "GET", "/docs/?x=1", 308, "/docs?x=1"},
		{"whole", whole, "GET", "/admin/docs/", 308, "/admin/docs"},
		{"whole", whole, "GET", "/docs/else", 200, "api"}, // an unknown path
		{"whole", whole, "GET", "//docs/", 200, "api"},
		{"whole", whole, "POST", "/docs/", 404, "not_found"},
		{"whole", whole, "GET", "/openapi.json/", 200, "api"}, // no page
		{"public", public, "GET", "/docs/", 308, "/docs"},
		{"public", public, "GET", "/admin/docs/", 200, "api"},
		{"private", private, "GET", "/docs/", 404, "not_found"},
		{"private", private, "GET", "/admin/docs/", 308, "/admin/docs"},
	} {
		got := ask(newFront(c.of), c.method, c.path)
		if got.Code != c.status {
			t.Errorf("%s, %s %s: %d %s, want %d", c.name, c.method, c.path, got.Code, got.Body, c.status)
		}
		if answer := cmp.Or(got.Header().Get("Location"), got.Body.String()); answer != c.want && !strings.Contains(answer, `"code":"`+c.want) {
			t.Errorf("%s, %s %s: %q, want %q", c.name, c.method, c.path, answer, c.want)
		}
		if c.status != 200 && got.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s, %s %s has no request id", c.name, c.method, c.path)
		}
	}
}
