package app

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tollgate/internal/admin"
	"tollgate/internal/app/metrics"
	"tollgate/internal/httpapi"
)

// TestGuessesOfTheTokenAreSlowed checks that the operator API and /metrics count together, by
// address, and that a request with the right token never waits.
func TestGuessesOfTheTokenAreSlowed(t *testing.T) {
	t.Parallel()
	a := &App{metrics: metrics.New("test")}
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	waits := 0 // waits of the current request
	left := 0  // waits that end at once
	allowed := wrongTokens()
	allowed.Now = func() time.Time { return time.Unix(1_000_000, 0) }
	allowed.Sleep = func(ctx context.Context, _ time.Duration) {
		waits++
		if ctx.Err() != nil {
			left++
		}
	}
	const token = "operator-token-of-the-test"
	guessed := a.throttle("admin_token", allowed)
	f := newFront(surfaces{token: httpapi.NewOperatorToken(token), wrong: guessed, proxies: proxies, metrics: answerWith("metrics"),
		log:   slog.New(slog.DiscardHandler),
		admin: admin.New(admin.Options{Token: httpapi.NewOperatorToken(token), WrongTokens: guessed, TrustedProxies: proxies})})
	send := func(path, authorization, from string, status, wait int) {
		t.Helper()
		waits = 0
		if got := ask(f, "GET", path, "Authorization", authorization, "X-Forwarded-For", from); got.Code != status {
			t.Errorf("%s with %q is answered %d, want %d", path, authorization, got.Code, status)
		}
		if waits != wait {
			t.Errorf("%s with %q from %s waits %d times, want %d", path, authorization, from, waits, wait)
		}
	}
	const alice, bob = "203.0.113.1", "203.0.113.2"
	for range 5 {
		send("/metrics", "Bearer wrong", alice, 401, 0)
		send("/admin/v1/accounts", "Bearer wrong", alice, 401, 0)
	}
	for range 3 {
		send("/metrics", "Bearer wrong", alice, 401, 1)
		send("/admin/v1/accounts", "Bearer wrong", alice, 401, 1)
		send("/metrics", "Bearer "+token, alice, 200, 0)
		send("/admin/v1/nothing", "Bearer "+token, alice, 404, 0)
		send("/metrics", "", alice, 401, 0)
		send("/metrics", "Bearer wrong", bob, 401, 0)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	r := httptest.NewRequestWithContext(ctx, "GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer wrong")
	r.Header.Set("X-Forwarded-For", alice)
	r.RemoteAddr = "192.0.2.9:1"
	f.ServeHTTP(httptest.NewRecorder(), r)
	if left != 0 {
		t.Error("a disconnected client waits less")
	}
	const line = `tollgate_wrong_keys_delayed_total{secret="admin_token"} 7`
	if body := ask(a.metrics.Handler(), "GET", "/metrics").Body.String(); !strings.Contains(body, line) {
		t.Errorf("no %s", line)
	}
}
