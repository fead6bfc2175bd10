package credential

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tollgate/internal/upstream"
)

// Transport adds a source's credential to the calls to a line's own address. It returns a
// *upstream.Failure if there is no credential.
type Transport struct {
	// Base carries the calls.
	Base http.RoundTripper
	// Source has the credential.
	Source *Source
	// Own is the line's address. Calls to another host or port are sent without the credential.
	Own *url.URL
	// Also is another status, besides 401, of responses to a rejected credential.
	Also int
}

// Open returns a transport on top of base for a line's calls, with the credential from fetch. Lines
// with the same provider, options and key share a source. Open returns an error if the base address
// is invalid.
func (k *Keeper) Open(t upstream.Target, base http.RoundTripper, fetch Fetch) (*Transport, error) {
	own, err := url.Parse(t.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
	}
	return &Transport{Base: base, Source: k.Source([]any{t.Provider, t.Options, t.Key}, fetch), Own: own}, nil
}

// Bounds for draining a rejection, so that the connection can serve the next call.
const (
	refusalBytes = 64 << 10
	refusalWait  = time.Second
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.Own.Scheme || !strings.EqualFold(r.URL.Host, t.Own.Host) {
		return t.Base.RoundTrip(r)
	}
	c, err := t.Source.Get(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // not sent
		}
		return nil, err
	}
	resp, err := t.send(r, c)
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != t.Also || r.Body != nil && r.GetBody == nil {
		return resp, err
	}
	other, err := t.Source.Renew(r.Context(), c)
	if err != nil || other == nil {
		return resp, nil // return the rejection
	}
	again := r.Clone(r.Context())
	if r.GetBody != nil {
		if again.Body, err = r.GetBody(); err != nil {
			return resp, nil
		}
	}
	leave(resp)
	return t.send(again, other)
}

// send sends a request with a credential.
func (t *Transport) send(r *http.Request, c *Credential) (*http.Response, error) {
	own := r.WithContext(r.Context())
	own.Header = r.Header.Clone()
	if err := c.Authorize(own); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // not sent
		}
		return nil, FetchFailure(0, err)
	}
	return t.Base.RoundTrip(own)
}

// leave reads the rest of a rejection, within bounds, and closes it.
func leave(resp *http.Response) {
	timer := time.AfterFunc(refusalWait, func() { _ = resp.Body.Close() }) // ends the read
	_, _ = io.CopyN(io.Discard, resp.Body, refusalBytes)                   // after an error, the next call uses a new connection
	timer.Stop()
	_ = resp.Body.Close() // the response is not needed
}
