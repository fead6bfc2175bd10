// Package exchange owns the parts shared by all HTTP adapters: the connection pool, sending one
// POST, checking a response's status and headers, and a body whose Close cancels the call. Bodies
// pass through unchanged in both directions.
//
// Invariants:
//   - A call is sent at most once. The transport repeats a call only if none of its bytes were
//     written (see idempotencyHeader).
//   - The line's credential is sent only to the line's own host: redirects of calls are not
//     followed, and no proxy from the environment is used. The credential is redacted from every
//     failure.
//   - The operator chooses the line's own host and port, which may be private. Any other host or
//     port comes from a response and is reached only through Target.PublicTransport, also after a
//     redirect.
//   - Every read is bounded in size and time, and every document passed on is bounded in depth and
//     number of values.
package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/wire/rawjson"
	"tollgate/internal/wire/usage"
)

// userAgent is sent instead of the client's User-Agent.
const userAgent = "tollgate"

// Limits for reading an error response.
const (
	maxErrorBody  = 64 << 10
	errorBodyWait = 5 * time.Second
)

// idempotencyHeader carries the gateway's key for the attempt. The name is deliberately in lower
// case, because net/http may send a POST with the canonical `Idempotency-Key` again after a broken
// connection, although the provider may have run and billed the first request. Only the retry loop
// over lines may send a request again.
const idempotencyHeader = "idempotency-key"

// Client calls the provider of one line. It is safe for concurrent use and need not be closed.
type Client struct {
	transport       http.RoundTripper
	publicTransport http.RoundTripper // for other hosts, which are unreachable if nil
	base            *url.URL
	secrets         []string // the line's credential and the secret values of its headers
	header          http.Header
	set             map[string]json.RawMessage
	omit            []string
	source          upstream.Source
}

// Open returns a client for the line's own base address or, by default, the provider's. The
// transport must neither follow redirects nor repeat requests; use NewTransport. Open returns an
// error if the address is not an http(s) URL with a host, if the address has credentials or a
// query, or if Info.CheckOptions rejects the options.
func Open(t upstream.Target, provider upstream.Info, transport http.RoundTripper) (*Client, error) {
	base := t.BaseURL
	if base == "" {
		base = provider.DefaultBaseURL
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
	}
	if err := provider.CheckOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	if u.Path == "" {
		u.Path = "/" // JoinPath adds no slash to an empty path
	}
	return &Client{
		transport: transport, publicTransport: t.PublicTransport, base: u, secrets: append([]string{t.Key}, t.Secrets...),
		header: t.Header, set: t.Set, omit: t.Omit,
		source: upstream.Source{Provider: t.Provider, BaseURL: base},
	}, nil
}

// URL returns an address below the line's base address. Calls share the URL, so the caller must not
// change it after the first call.
func (c *Client) URL(path ...string) *url.URL { return c.base.JoinPath(path...) }

// ParseOwnURL parses an address from the provider and reports whether the address is on the line's
// own host and may receive the credential.
func (c *Client) ParseOwnURL(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || !c.isOwnURL(u) {
		return nil, false
	}
	return u, true
}

// isOwnURL reports whether u has the scheme, host and port of the line's base address and no user info.
func (c *Client) isOwnURL(u *url.URL) bool {
	return u.Scheme == c.base.Scheme && strings.EqualFold(u.Hostname(), c.base.Hostname()) && port(u) == port(c.base) && u.User == nil
}

// port returns the port of an http(s) address, explicit or by default.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// NoOptions returns an Info.CheckOptions function for a provider without options.
func NoOptions(provider string) func(options map[string]any) error {
	return func(options map[string]any) error {
		for name := range options {
			return fmt.Errorf("%s: unknown option. Provider %s has no options", name, provider)
		}
		return nil
	}
}

// mergedHeader is the only header for which the line's values are added to the client's values.
const mergedHeader = "Anthropic-Beta"

// addHeader adds the line's own headers to a call's headers, and replaces headers of the same name
// except mergedHeader.
func (c *Client) addHeader(to http.Header) {
	for name, values := range c.header {
		if name == mergedHeader {
			values = slices.Concat(to[name], values)
		}
		to[name] = values
	}
}

// redact redacts the line's secrets from a provider's response.
func (c *Client) redact(data []byte) []byte {
	for i, secret := range c.secrets {
		if len(secret) >= 8 || i == 0 && secret != "" { // a shorter header value may be an ordinary word
			data = bytes.ReplaceAll(data, []byte(secret), []byte("[redacted]"))
		}
	}
	return data
}

// Post is one call.
type Post struct {
	// URL is the address of the call, from Client.URL.
	URL *url.URL
	// Header holds the credential and further headers for the provider, in addition to the headers
	// of every call. It is read-only.
	Header http.Header
	Call   chatcall.Call
	// FileAlone sends the call's file as the whole body, and the fields as parameters of the address.
	FileAlone bool
	// LastEvents lists the possible beginnings of a stream's last event, such as `event:
	// message_stop`. After such a text, Close reads the body to its end, so that the connection can
	// serve the next call. LastEvents is empty if the provider's streams have no last event.
	LastEvents []string
}

// Send sends a call with the fields set by the line and without the fields omitted by the line, and
// checks the response's status and headers. The error is always a *upstream.Failure without the
// line's credential.
func (c *Client) Send(ctx context.Context, p Post) (*chatcall.Response, error) {
	p.Call.Body = rawjson.Override(p.Call.Body, c.set, c.omit)
	return c.send(ctx, p)
}

func (c *Client) send(ctx context.Context, p Post) (*chatcall.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := c.transport.RoundTrip(c.request(ctx, p))
	if err != nil {
		f := upstream.ConnectionFailure(ctx, err).Redact(c.secrets...)
		cancel()
		return nil, f
	}
	respBody := &body{src: resp.Body, cancel: cancel}
	if f := c.checkResponse(resp, respBody, p.Call); f != nil {
		respBody.Close()
		return nil, f
	}
	if p.Call.Stream {
		respBody.ends.words = p.LastEvents
	}
	return &chatcall.Response{
		Body:        respBody,
		ContentType: resp.Header.Get("Content-Type"),
		Header:      resp.Header,
		Length:      max(0, resp.ContentLength),
		Stream:      p.Call.Stream,
	}, nil
}

// FetchDocument sends a call and returns its response, a small JSON document. The call omits the fields
// set by the line, because the fields are only for generating answers. An error in the document, and
// a document of more than limit bytes, are failures. The error is always a *upstream.Failure.
func (c *Client) FetchDocument(ctx context.Context, p Post, limit int64) ([]byte, error) {
	p.Call.Stream = false
	p.Call.Body = rawjson.Override[json.RawMessage](p.Call.Body, nil, c.omit)
	answer, err := c.send(ctx, p)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, upstream.ConnectionFailure(ctx, err).Redact(c.secrets...)
	}
	if int64(len(data)) > limit {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("answer of more than %d bytes", limit))
	}
	if err := rawjson.CheckShape(data); err != nil {
		return nil, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	if f := c.sourceOf(p.Call).Classify(http.StatusOK, answer.ContentType, data, nil); f != nil {
		return nil, f.Redact(c.secrets...)
	}
	return data, nil
}

// request builds the HTTP request. All calls share the URL; transports do not change it.
func (c *Client) request(ctx context.Context, p Post) *http.Request {
	accept := "application/json"
	switch {
	case p.Call.AnyType:
		accept = "*/*"
	case p.Call.Stream:
		accept = "text/event-stream"
	}
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {accept},
		"User-Agent":   {userAgent},
	}
	maps.Copy(header, p.Header)
	c.addHeader(header)
	if p.Call.IdempotencyKey != "" {
		header[idempotencyHeader] = []string{p.Call.IdempotencyKey}
	}
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           p.URL,
		Host:          p.URL.Host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          newRequestBody(p.Call.Body),
		ContentLength: int64(p.Call.Body.Len()),
		GetBody:       func() (io.ReadCloser, error) { return newRequestBody(p.Call.Body), nil },
	}
	switch {
	case p.Call.File == nil:
	case p.FileAlone:
		attachFile(req, p.Call)
	default:
		formOf(p.Call.Body.Bytes(), p.Call.File).attach(ctx, req)
	}
	return req.WithContext(ctx)
}

// checkResponse checks the status and headers of a response, and returns nil if both are right. After
// a failure it reads a bounded part of the body.
func (c *Client) checkResponse(resp *http.Response, respBody *body, call chatcall.Call) *upstream.Failure {
	contentType := resp.Header.Get("Content-Type")
	ok := resp.StatusCode >= 200 && resp.StatusCode < 300
	if ok && (call.AnyType || isRequestedType(contentType, call.Stream)) && uncompressed(resp.Header) {
		return nil
	}
	data := respBody.readStart(maxErrorBody, errorBodyWait)
	data = c.redact(data)
	if resp.Header.Get("Date") == "" { // Classify needs Date for a Retry-After with a date
		resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	f := c.sourceOf(call).Classify(resp.StatusCode, contentType, data, resp.Header)
	if f == nil { // a good status with another content type than requested
		f = upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("unexpected content type %q", contentType))
		f.Status = resp.StatusCode
	}
	f.Tokens = upstream.TokensOf(usage.Read(call.Form, data))
	return f.Redact(c.secrets...)
}

// sourceOf returns the source of the answers to a call.
func (c *Client) sourceOf(call chatcall.Call) upstream.Source {
	s := c.source
	s.Model = call.Model
	return s
}

// isRequestedType reports whether a content type matches the requested type.
func isRequestedType(contentType string, stream bool) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if stream {
		return kind == "text/event-stream"
	}
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// uncompressed reports whether the body is not compressed. The gateway cannot decompress bodies, and
// does not request compression.
func uncompressed(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}
