// Package credential owns short-lived credentials of clouds, such as tokens and signing keys.
// Adapters fetch the credentials.
//
// Invariants:
//   - A credential is fetched when a call first needs it. There is at most one fetch at a time for
//     all waiting calls.
//   - A credential is renewed before it expires, while calls still use the old one.
//   - A call rejected because of its credential is sent once more, but only with another
//     credential. This is safe because the provider did not begin to process the rejected call.
//   - A failed fetch is the line's failure, never the client's.
//   - A credential is sent only to the line's own address.
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
	// Expires is the time of expiry, or the zero time if unknown.
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

// Fetch fetches a credential. Its errors should come from FetchFailure.
type Fetch func(ctx context.Context) (*Credential, error)

// maxCause is the maximum length of the reported cause of a failed fetch, in bytes.
const maxCause = 300

// FetchFailure returns the failure of a fetch. status is the error status of the issuer's response, or
// 0 if there was no response. A 4xx other than 408 and 429 means that the line's configured credentials
// are invalid. All other failures may be temporary.
func FetchFailure(status int, err error) *upstream.Failure {
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

// Client returns an HTTP client for a fetch. Its calls end with ctx and follow no redirects.
func Client(ctx context.Context, transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     contextTransport{ctx, transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// contextTransport adds a context to every call, because some libraries make calls without a context.
type contextTransport struct {
	ctx  context.Context
	base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t contextTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.base.RoundTrip(r.WithContext(t.ctx))
}
