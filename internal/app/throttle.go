package app

import "tollgate/internal/limit"

// wrongKeys is the allowance of wrong keys from one address without waiting. A test suite notices
// nothing; a client that has lost its key and retries without a pause gets ten answers a second.
func wrongKeys() limit.Allowance { return limit.Allowance{Burst: 600, Rate: 50, Waiting: 64} }

// keysAllowed returns wrongKeys, or a test's replacement.
func (o Options) keysAllowed() limit.Allowance {
	if o.wrongKeys.Burst > 0 {
		return o.wrongKeys
	}
	return wrongKeys()
}

// wrongTokens is the allowance of wrong operator tokens from one address without waiting. People type
// tokens, so a few wrong ones are enough.
func wrongTokens() limit.Allowance { return limit.Allowance{Burst: 10, Rate: 10.0 / 60, Waiting: 16} }

// throttle returns the throttle of an allowance, and counts delays.
func (a *App) throttle(secret string, allowed limit.Allowance) *limit.Throttle {
	allowed.OnDelay = a.metrics.Delays(secret)
	return limit.NewThrottle(allowed)
}
