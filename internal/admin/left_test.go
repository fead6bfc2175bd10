package admin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestDisconnectIsNoServerError checks requests whose caller has disconnected. Such a request gets
// the usual answer, and its change is made. An audit, which may take long, ends when its caller
// disconnects.
func TestDisconnectIsNoServerError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, c *caller) {
		ctx, leave := context.WithCancel(t.Context())
		leave()
		send := func(method, path, body string) (w *httptest.ResponseRecorder, cut any) {
			defer func() { cut = recover() }()
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
			if w, cut := send(tt.method, tt.path, tt.body); cut != nil || w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s; %v", tt.method, tt.path, w.Code, w.Body, cut)
			}
		}
		c.ok("GET", "/accounts/"+id, "").want(`{"balance_usd":5}`)
		if list, _ := c.ok("GET", "/accounts", "").list(); len(list) != 2 {
			t.Errorf("accounts %v", list)
		}
		w, cut := send("GET", "/audit", "")
		if err, _ := cut.(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("an audit is answered %d %s; %v", w.Code, w.Body, cut)
		}
		if c.log.Len() > 0 {
			t.Errorf("the log has %s", c.log)
		}
	})
}
