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

// Transport adds a source's credential to the calls to a line's own address. If there is no
// credential, calls return a *upstream.Failure.
type Transport struct {
	// Base carries the calls.
	Base http.RoundTripper
	// Source has the credential.
	Source *Source
	// LineURL is the line's address. Calls to another host or port are sent without the credential.
	LineURL *url.URL
	// RejectionStatus is the status, besides 401, of a response that rejects the credential.
	RejectionStatus int
}

// Open returns a transport on top of base for a line's calls, with the credential from fetch. Lines
// with the same provider, options and key share a source. Open returns an error if the base address
// is invalid.
func (k *Keeper) Open(t upstream.Target, base http.RoundTripper, fetch Fetch) (*Transport, error) {
	lineURL, err := url.Parse(t.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
	}
	return &Transport{Base: base, Source: k.Source([]any{t.Provider, t.Options, t.Key}, fetch), LineURL: lineURL}, nil
}

// Bounds for draining a rejection, so that the connection can serve the next call.
const (
	drainBytes = 64 << 10
	drainWait  = time.Second
)

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.LineURL.Scheme || !strings.EqualFold(r.URL.Host, t.LineURL.Host) {
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
	if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != t.RejectionStatus || r.Body != nil && r.GetBody == nil {
		return resp, err
	}
	newCredential, err := t.Source.Renew(r.Context(), c)
	if err != nil || newCredential == nil {
		return resp, nil // return the rejection
	}
	retry := r.Clone(r.Context())
	if r.GetBody != nil {
		if retry.Body, err = r.GetBody(); err != nil {
			return resp, nil
		}
	}
	drain(resp)
	return t.send(retry, newCredential)
}

// send sends a request with a credential.
func (t *Transport) send(r *http.Request, c *Credential) (*http.Response, error) {
	req := r.WithContext(r.Context())
	req.Header = r.Header.Clone()
	if err := c.Authorize(req); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // not sent
		}
		return nil, FetchFailure(0, err)
	}
	return t.Base.RoundTrip(req)
}

// drain reads the rest of a rejection's body, within bounds, and closes the body.
func drain(resp *http.Response) {
	timer := time.AfterFunc(drainWait, func() { _ = resp.Body.Close() }) // ends the read
	_, _ = io.CopyN(io.Discard, resp.Body, drainBytes)                   // after an error, the next call uses a new connection
	timer.Stop()
	_ = resp.Body.Close() // the response is not needed
}
