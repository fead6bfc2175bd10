package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDisconnectedRequests checks that a request still succeeds if its client has disconnected,
// except for an audit, which ends because it may take long.
func TestDisconnectedRequests(t *testing.T) {
	t.Parallel()
	eachDB(t, func(t *testing.T, c *caller) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		send := func(method, path, body string) (w *httptest.ResponseRecorder, panicked any) {
			defer func() { panicked = recover() }()
			r := httptest.NewRequestWithContext(ctx, method, Base+path, strings.NewReader(body))
			r.Header.Set("Authorization", "Bearer "+token)
			w = httptest.NewRecorder()
			c.handler.ServeHTTP(w, r)
			return w, nil
		}
		id := c.ok("POST", "/accounts", `{"name":"a"}`).text("id")
		key := c.ok("POST", "/accounts/"+id+"/keys", `{}`).text("id")
		for _, tt := range []struct{ method, path, body string }{
			{"POST", "/accounts", `{"name":"b","email":"b@example.com","password":"correct horse"}`},
			{"POST", "/accounts/" + id + "/users", `{"email":"a@example.com","password":"correct horse"}`},
			{"POST", "/accounts/" + id + "/credits", `{"usd":5}`},
			{"PATCH", "/keys/" + key, `{"rpm":5}`},
			{"GET", "/accounts", ""}, {"GET", "/accounts/" + id, ""}, {"GET", "/keys/" + key, ""}, {"GET", "/requests", ""}, {"GET", "/jobs", ""},
			{"GET", "/lines", ""}, {"GET", "/accounts/" + id + "/webhook", ""}, {"GET", "/accounts/" + id + "/deliveries", ""},
		} {
			if w, panicked := send(tt.method, tt.path, tt.body); panicked != nil || w.Code != http.StatusOK {
				t.Errorf("%s %s answered %d %s and panicked with %v, want 200", tt.method, tt.path, w.Code, w.Body, panicked)
			}
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":5}`)
		if list, _ := c.ok("GET", "/accounts", "").list(); len(list) != 2 {
			t.Errorf("the accounts are %v, want 2", list)
		}
		w, panicked := send("GET", "/audit", "")
		if err, _ := panicked.(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("the audit answered %d %s and panicked with %v, want ErrAbortHandler", w.Code, w.Body, panicked)
		}
		if c.log.Len() > 0 {
			t.Errorf("the log is %s, want it empty", c.log)
		}
	})
}
