// Package credential owns credentials that run out: tokens, and keys for signing,
// which a cloud hands out for a while. How each is fetched is the adapter's.
//
// Invariants:
//   - A credential is fetched when a call first needs it, and at most one fetch
//     of it runs at a time, whoever waits.
//   - It is renewed before its end, while calls go on with the old one.
//   - A call that is refused for it is made once more, with another credential,
//     and never with the same: what was refused had not begun.
//   - A failed fetch is the line's failure, never the client's.
//   - A credential goes to the line's own address alone.
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

// Credential is what was fetched. It does not change.
type Credential struct {
	// Authorize puts it on a request, whose headers are the caller's own.
	Authorize func(r *http.Request) error
	// Secrets are what must not be told.
	Secrets []string
	// Expires is its end; zero: it has none that is known.
	Expires time.Time
}

// Bearer is a token that goes out as `Authorization: Bearer TOKEN`.
func Bearer(token string, expires time.Time) *Credential {
	value := []string{"Bearer " + token}
	return &Credential{Secrets: []string{token}, Expires: expires, Authorize: func(r *http.Request) error {
		r.Header["Authorization"] = value
		return nil
	}}
}

// Fetch fetches a credential. Its error is best made by Refused.
type Fetch func(ctx context.Context) (*Credential, error)

// maxCause bounds what is told of a failed fetch, in bytes.
const maxCause = 300

// Refused is the failure of a fetch: who hands credentials out refused it with a
// status, or did not answer (0). A 4xx says that ours are not good; all else may
// pass.
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
