package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/ledger"
	"tollgate/internal/limit"
	"tollgate/internal/store"
	"tollgate/internal/store/storetest"
)

func TestMethodNotAllowed(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	for _, c := range []struct{ method, path, allow string }{
		{"GET", "/v1/chat/completions", "POST"},
		{"HEAD", "/v1/chat/completions", "POST"},
		{"OPTIONS", "/v1/chat/completions", "POST"},
		{"POST", "/v1/models", "GET, HEAD"},
		{"DELETE", "/v1/usage", "GET, HEAD"},
		{"OPTIONS", "/v1/models", "GET, HEAD"},
	} {
		got := d.send(c.method, c.path, "")
		if got.status != 405 || got.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow %q, want %q", c.method, c.path, got.status, got.header.Get("Allow"), c.allow)
		}
	}
}

func TestUnknownPaths(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	for _, path := range []string{"/", "/v1", "/v1/", "/v2/models", "/v1//models", "/v1/models/", "/v1/responses/resp_1/x", "/nativex",
		"/v1/%00"} {
		d.send("GET", path, "").refused(t, 404, "not_found")
	}
}

// TestNative checks the 404 of unknown paths below /native, without a key.
func TestNative(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	for _, path := range []string{"/native", "/native/", "/native/v1/chat/completions?beta=true", "/native/v1/model/swift-1"} {
		for _, method := range []string{"GET", "POST", "HEAD"} {
			got := d.send(method, path, "")
			if got.status != 404 {
				t.Errorf("%s %s: %d", method, path, got.status)
			}
			if method == "HEAD" {
				continue
			}
			var body struct {
				Type  string
				Error map[string]string
			}
			if err := json.Unmarshal(got.body, &body); err != nil || body.Type != "error" ||
				body.Error["type"] != "not_found_error" || body.Error["message"] == "" || len(body.Error) != 2 {
				t.Errorf("%s %s: %v %s", method, path, err, got.body)
			}
		}
	}
}

// TestBodyIsNotReadWithoutAKey sends only the header of a request with a bad key: the response must
// come without waiting for the body.
func TestBodyIsNotReadWithoutAKey(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	answer := d.sendRaw("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-no\r\nContent-Length: 1000\r\n" +
		"Expect: 100-continue\r\n\r\n")
	if answer.StatusCode != 401 {
		t.Errorf("got %d, want 401 and not 100", answer.StatusCode)
	}
}

// TestChunkedBodyOverLimit sends a large body without a Content-Length.
func TestChunkedBodyOverLimit(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	r, err := http.NewRequestWithContext(t.Context(), "POST", d.server.URL+"/v1/chat/completions",
		struct{ io.Reader }{strings.NewReader(strings.Repeat(" ", maxBody+1))})
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	d.do(r).refused(t, 413, "request_too_large")
}

// TestBrokenBody expects a truncated body to be rejected.
func TestBrokenBody(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	answer := d.sendRaw("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret +
		"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"mod\r\nzz\r\n")
	if answer.StatusCode != 400 || !answer.Close {
		t.Errorf("got %d, close %v", answer.StatusCode, answer.Close)
	}
}

// TestPanic checks that a panic becomes a 503 and is logged with the request's id, without the key.
func TestPanic(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), func(o *api.Options) { o.Ledger = nil })
	_, secret := d.key(account.KeySettings{})
	got := d.send("GET", "/v1/usage", "", as(secret)...)
	got.refused(t, 503, "service_unavailable")
	log := d.log.String()
	if !strings.Contains(log, "panicked") || !strings.Contains(log, got.header.Get("x-request-id")) ||
		!strings.Contains(log, "api/server.go") {
		t.Errorf("log %s", log)
	}
	if strings.Contains(log, secret) {
		t.Error("the key is in the log")
	}
}

// TestDatabaseAway expects queries to answer with Retry-After and to hide the cause.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	url := storetest.SQLite(t)
	db := storetest.Open(t, url, store.Options{})
	away, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := away.Close(); err != nil {
		t.Fatal(err)
	}
	d := newServer(t, db, func(o *api.Options) { o.Ledger = ledger.New(ledger.Options{DB: away}) })
	_, secret := d.key(account.KeySettings{})
	got := d.send("GET", "/v1/usage", "", as(secret)...)
	got.refused(t, 503, "service_unavailable")
	if got.header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", got.header.Get("Retry-After"))
	}
	for _, want := range []string{"account=" + d.account, "key=key_", "model=\"\""} {
		if !strings.Contains(d.log.String(), want) {
			t.Errorf("the log does not contain %s: %s", want, d.log.String())
		}
	}
	if strings.Contains(string(got.body), "closed") || !strings.Contains(d.log.String(), got.header.Get("x-request-id")) {
		t.Errorf("body %s\nlog %s", got.body, d.log.String())
	}
}

// TestNamedKey checks that code inside the process may name a key instead of sending it, that the
// named key is checked like any key, and that a client cannot name a key.
func TestNamedKey(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var options api.Options
		d := newServer(t, db, func(o *api.Options) { options = *o })
		door := api.New(options)
		id, _ := d.key(account.KeySettings{AllowedModels: []string{"swift-1"}})
		ask := func(account, key, body string) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(body))
			w := httptest.NewRecorder()
			door.ServeAs(w, r, account, key)
			return w
		}
		for _, c := range []struct {
			name, account, key, body string
			status                   int
		}{
			{"good", d.account, id, hello, 200},
			{"a model that it may not use", d.account, id, strings.Replace(hello, "swift-1", "other-1", 1), 403},
			{"no such key", d.account, "key_none", hello, 401},
			{"of another account", "acct_other", id, hello, 401},
		} {
			if got := ask(c.account, c.key, c.body); got.Code != c.status {
				t.Errorf("%s: %d %s", c.name, got.Code, got.Body)
			}
		}
	})
}

// sendRaw sends bytes over a new connection and returns the first response.
func (s *server) sendRaw(request string) *http.Response {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if _, err = io.WriteString(conn, request); err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

// brokenBody is a body that stops halfway and cancels the request's context, like a lost
// connection.
type brokenBody struct {
	err   error
	leave context.CancelFunc
}

func (b brokenBody) Read([]byte) (int, error) {
	b.leave()
	return 0, b.err
}

// TestBrokenBodiesAreClientErrors checks that a slow or truncated body gets 400, even if the
// request's context is done and the key cannot be confirmed.
func TestBrokenBodiesAreClientErrors(t *testing.T) {
	t.Parallel()
	d := newServer(t, onSQLite(t), nil)
	_, secret := d.key(account.KeySettings{})
	for _, err := range []error{os.ErrDeadlineExceeded, io.ErrUnexpectedEOF, errors.New("reset")} {
		for _, path := range []string{"/v1/chat/completions", "/v1/responses", "/native/v1/messages", "/native/v1/messages/count_tokens",
			"/v1/images/generations", "/v1/images/edits", "/v1/videos/generations"} {
			ctx, leave := context.WithTimeout(t.Context(), time.Minute)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, brokenBody{err, leave})
			r.Header.Set("Authorization", "Bearer "+secret)
			w := httptest.NewRecorder()
			d.server.Config.Handler.ServeHTTP(w, r)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "breaks off") {
				t.Errorf("%s, %v: %d %s", path, err, w.Code, w.Body)
			}
		}
	}
}

// TestDisconnectIsNoServerError checks that a client that has closed its sending side gets the
// usual response.
func TestDisconnectIsNoServerError(t *testing.T) {
	t.Parallel()
	waits := 0
	d := newServer(t, onSQLite(t), func(o *api.Options) {
		o.WrongKeys = limit.NewThrottle(limit.Allowance{Burst: 1, Rate: 0.001, Waiting: 1, Sleep: func(ctx context.Context, _ time.Duration) {
			if waits++; ctx.Err() != nil {
				t.Error("a client that disconnects waits less")
			}
		}})
	})
	_, secret := d.key(account.KeySettings{})
	const never = "sk-0123456789012345678901234567890123456789012"
	for _, c := range []struct {
		method, path, key, body string
		status                  int
	}{
		{"GET", "/v1/models", secret, "", 200},
		{"GET", "/native/v1/models", secret, "", 200},
		{"GET", "/v1/usage", secret, "", 200},
		{"GET", "/v1/dashboard/billing/credit_grants", secret, "", 200},
		{"GET", "/v1/images/jobs/job_none", secret, "", 404},
		{"GET", "/v1/videos/jobs/job_none", secret, "", 404},
		{"GET", "/v1/usage", never, "", 401},
		{"POST", "/v1/chat/completions", never, "{}", 401},
		{"POST", "/v1/chat/completions", secret, "{}", 400},
		{"POST", "/v1/responses", secret, "{}", 400},
		{"POST", "/native/v1/messages", secret, "{}", 400},
		{"POST", "/v1/images/generations", secret, "{}", 400},
		{"POST", "/v1/videos/generations", secret, "{}", 400},
	} {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		r := httptest.NewRequestWithContext(ctx, c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+c.key)
		w := httptest.NewRecorder()
		d.server.Config.Handler.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s: %d %s; want %d", c.method, c.path, w.Code, w.Body, c.status)
		}
	}
	if waits != 1 {
		t.Errorf("two wrong keys are delayed %d times, want once", waits)
	}
}
