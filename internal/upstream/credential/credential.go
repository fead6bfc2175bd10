// Package credential owns short-lived credentials of clouds: tokens and signing keys. The adapter
// fetches them.
//
// Invariants:
//   - A credential is fetched when a call first needs the credential, with at most one fetch at a
//     time for all waiting calls.
//   - A credential is renewed before its expiry, while calls still use the old one.
//   - A call rejected for its credential is sent once more, with another credential and never with
//     the same: a rejected call had not begun.
//   - A failed fetch is the line's failure, never the client's.
//   - A credential is only sent to the line's own address.
package credential

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
)

// Credential is a fetched credential. It is immutable.
type Credential struct {
	// Authorize adds the credential to a request. The caller owns the request's headers.
	Authorize func(r *http.Request) error
	// Secrets must not be shown or logged.
	Secrets []string
	// Expires is the time of expiry; the zero time if unknown.
	Expires time.Time
}

// Bearer returns a token sent as `Authorization: Bearer TOKEN`.
func Bearer(token string, expires time.Time) *Credential {
	value := []string{"Bearer " + token}
	return &Credential{Secrets: []string{token}, Expires: expires, Authorize: func(r *http.Request) error {
		r.Header["Authorization"] = value
		return nil
	}}
}

// Fetch fetches a credential. Its error is best made by Refused.
type Fetch func(ctx context.Context) (*Credential, error)

// maxCause is the maximum length of the reported cause of a failed fetch, in bytes.
const maxCause = 300

// Refused returns the failure of a fetch after the issuer's response with an error status, or
// without a response (0). A 4xx means invalid credentials of the line, except 408 and 429; all
// other failures may pass.
func Refused(status int, err error) *upstream.Failure {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("fetching a credential: %s", text))
	switch {
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests:
	case status >= 400 && status <= 499:
		f.Health = upstream.HealthCredential
	}
	return f
}

// Client is an HTTP client for a fetch: its calls end with ctx, and follow no
// redirect.
func Client(ctx context.Context, transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     bound{ctx, transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// bound ends calls with a context: some libraries make theirs without any.
type bound struct {
	ctx  context.Context
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.base.RoundTrip(r.WithContext(b.ctx))
}
