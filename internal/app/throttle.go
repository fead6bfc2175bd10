package app

import (
	"context"
	"net/http"

	"tollgate/internal/httpapi"
	"tollgate/internal/limit"
)

// wrongKeys is how many wrong keys an address may send without waiting. A test
// suite notices nothing; a client that has lost its key and asks without a pause
// gets ten answers a second.
func wrongKeys() limit.Allowance { return limit.Allowance{Burst: 600, Rate: 50, Waiting: 64} }

// keysAllowed is wrongKeys, or what a test has in its place.
func (o Options) keysAllowed() limit.Allowance {
	if o.wrongKeys.Burst > 0 {
		return o.wrongKeys
	}
	return wrongKeys()
}

// wrongTokens is wrongKeys for operator tokens, which people mistype.
func wrongTokens() limit.Allowance { return limit.Allowance{Burst: 10, Rate: 10.0 / 60, Waiting: 16} }

// throttle makes the throttle of an allowance, and counts what it delays.
func (a *App) throttle(secret string, allowed limit.Allowance) *limit.Throttle {
	allowed.Delayed = a.metrics.Delayed(secret)
	return limit.NewThrottle(allowed)
}

// slowGuesses returns what slows wrong operator tokens by address, wherever the
// token is asked for. No token at all is no guess.
func (a *App) slowGuesses(allowed limit.Allowance) func(w http.ResponseWriter, r *http.Request) {
	throttle := a.throttle("admin_token", allowed)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			return
		}
		// Who hangs up does not wait less.
		if !throttle.Wait(context.WithoutCancel(r.Context()), httpapi.ClientAddress(r, a.settings.TrustedProxies)) {
			w.Header().Set("Connection", "close")
		}
	}
}
