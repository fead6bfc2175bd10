package app

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tollgate/internal/admin"
)

// TestGuessesOfTheTokenAreSlowed: the operator API and /metrics count together,
// by address, and the operator who knows the token never waits.
func TestGuessesOfTheTokenAreSlowed(t *testing.T) {
	t.Parallel()
	a := &App{settings: &Settings{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, metrics: newMetrics("test")}
	waits := 0 // of the request at hand
	allowed := wrongTokens()
	allowed.Now = func() time.Time { return time.Unix(1_000_000, 0) }
	allowed.Sleep = func(context.Context, time.Duration) { waits++ }
	const token = "operator-token-of-the-test"
	guessed := a.slowGuesses(allowed)
	f := &front{token: token, wrong: guessed, metrics: named("metrics"), admin: admin.New(admin.Options{Token: token, WrongToken: guessed})}
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
	const line = `tollgate_wrong_keys_delayed_total{secret="admin_token"} 6`
	if body := ask(a.metrics.handler(), "GET", "/metrics").Body.String(); !strings.Contains(body, line) {
		t.Errorf("no %s", line)
	}
}
