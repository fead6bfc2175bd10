package api_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tollgate/internal/account"
	"tollgate/internal/api"
	"tollgate/internal/limit"
)

// TestDisconnectIsNoServerError checks that a client that has closed its sending side gets the
// usual answer.
func TestDisconnectIsNoServerError(t *testing.T) {
	t.Parallel()
	waits := 0
	d := newServer(t, onSQLite(t), func(o *api.Options) {
		o.WrongKeys = limit.NewThrottle(limit.Allowance{Burst: 1, Rate: 0.001, Waiting: 1, Sleep: func(ctx context.Context, _ time.Duration) {
			if waits++; ctx.Err() != nil {
				t.Error("who hangs up waits less")
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
		t.Errorf("two wrong keys wait %d times, want once", waits)
	}
}
