// Package exchange owns what every adapter that speaks HTTP needs: the pool of
// connections, the sending of one POST, the judgement of an answer's head, and
// a body that cancels its call when it is closed. Bodies pass through
// untouched in both directions.
//
// Invariants:
//   - One call is sent at most once. The transport repeats it only where
//     nothing of it was written (see idempotencyHeader).
//   - The line's credential goes to the line's own host alone: redirects of
//     calls are not followed, no proxy of the environment is used. It is
//     redacted from every failure.
//   - The line's own host and port are the operator's choice, so they may be
//     private. Every other host or port was named by an answer, and is reached
//     by upstream.Target's Strangers alone, at each hop.
//   - Nothing is read without a bound of size and time, nor handed on without
//     one of depth and number.
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

// userAgent is sent in place of the client's.
const userAgent = "tollgate"

// Limits on reading an answer that is none.
const (
	maxErrorBody  = 64 << 10
	errorBodyWait = 5 * time.Second
)

// idempotencyHeader carries our key for the attempt. It is written in lower
// case on purpose: net/http takes a POST with an `Idempotency-Key` in its
// canonical spelling for one that it may send again after a broken connection,
// though the provider may have run, and billed, the first one. The walk over
// lines is the only one to decide about a repetition.
const idempotencyHeader = "idempotency-key"

// Client is a line's way to its provider. It is safe for concurrent use and
// holds nothing that must be closed.
type Client struct {
	transport http.RoundTripper
	strangers http.RoundTripper // to other hosts; nil: no way there
	base      *url.URL
	secrets   []string // the line's credential, and what its headers hide
	header    http.Header
	set       map[string]json.RawMessage
	omit      []string
	source    upstream.Source
}

// Open makes the way of a line: to its own base address, or else the
// provider's. The transport must neither follow redirects nor repeat requests;
// NewTransport makes the one to use. It fails when the address is no http(s)
// URL with a host, or has credentials or a query in it, and for options that do
// not pass Info.CheckOptions.
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
		u.Path = "/" // what is joined to an empty path has no slash before it
	}
	return &Client{
		transport: transport, strangers: t.Strangers, base: u, secrets: append([]string{t.Key}, t.Secrets...),
		header: t.Header, set: t.Set, omit: t.Omit,
		source: upstream.Source{Provider: t.Provider, BaseURL: base},
	}, nil
}

// URL returns an address below the line's base address. Calls share it, so it
// must not be changed once it was used.
func (l *Client) URL(path ...string) *url.URL { return l.base.JoinPath(path...) }

// Own reads an address that the provider gave and tells whether it is on the
// line's own host, so that the credential may go there.
func (l *Client) Own(address string) (*url.URL, bool) {
	u, err := url.Parse(address)
	if err != nil || !l.owns(u) {
		return nil, false
	}
	return u, true
}

// owns tells whether an address has the scheme, host and port of the line's base
// address, and no user of its own.
func (l *Client) owns(u *url.URL) bool {
	return u.Scheme == l.base.Scheme && strings.EqualFold(u.Hostname(), l.base.Hostname()) && port(u) == port(l.base) && u.User == nil
}

// port is the port that an http(s) address leads to.
func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// NoOptions makes the check of a line's options for a provider that has none.
func NoOptions(provider string) func(options map[string]any) error {
	return func(options map[string]any) error {
		for name := range options {
			return fmt.Errorf("%s: unknown option: provider %s takes none", name, provider)
		}
		return nil
	}
}

// flagsHeader is the one of the headers of clients whose values add up.
const flagsHeader = "Anthropic-Beta"

// addHeader adds the line's own headers, which win over others.
func (l *Client) addHeader(to http.Header) {
	for name, values := range l.header {
		if name == flagsHeader {
			values = slices.Concat(to[name], values)
		}
		to[name] = values
	}
}

// hide takes the line's secrets out of what a provider said.
func (l *Client) hide(said []byte) []byte {
	for i, secret := range l.secrets {
		if len(secret) >= 8 || i == 0 && secret != "" { // shorter values of headers are ordinary words
			said = bytes.ReplaceAll(said, []byte(secret), []byte("[redacted]"))
		}
	}
	return said
}

// Post is one call.
type Post struct {
	// URL is where it goes; from Line.URL.
	URL *url.URL
	// Header holds what goes out beside the headers of every call: the
	// credential, and what the provider wants to know. It is only read.
	Header http.Header
	// Call is what is sent.
	Call chatcall.Call
	// Ends are the words with which the last event of the provider's streams
	// begins (`event: message_stop`). When one of them was read, closing the
	// answer's body reads the end of the HTTP body, so that the connection can
	// serve the next call. None for providers whose streams just end.
	Ends []string
}

// Send sends a call, with what the line sets and without what it omits, and
// judges the head of the answer. The error is always a *upstream.Failure without
// the line's credential in it.
func (l *Client) Send(ctx context.Context, p Post) (*chatcall.Response, error) {
	p.Call.Body = rawjson.Override(p.Call.Body, l.set, l.omit)
	return l.send(ctx, p)
}

func (l *Client) send(ctx context.Context, p Post) (*chatcall.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	resp, err := l.transport.RoundTrip(l.request(ctx, p))
	if err != nil {
		f := upstream.Interrupted(ctx, err).Redact(l.secrets...)
		cancel()
		return nil, f
	}
	from := &body{from: resp.Body, cancel: cancel}
	if f := l.judge(resp, from, p.Call); f != nil {
		from.Close()
		return nil, f
	}
	if p.Call.Stream {
		from.ends.words = p.Ends
	}
	return &chatcall.Response{
		Body:        from,
		ContentType: resp.Header.Get("Content-Type"),
		Length:      max(0, resp.ContentLength),
		Stream:      p.Call.Stream,
	}, nil
}

// Ask sends a call that is answered by one small document, and returns that. What
// the line sets is for answers and does not go along.
// Errors inside it are failures too, and so is a document of more than limit
// bytes. The error is always a *upstream.Failure.
func (l *Client) Ask(ctx context.Context, p Post, limit int64) ([]byte, error) {
	p.Call.Stream = false
	p.Call.Body = rawjson.Override[json.RawMessage](p.Call.Body, nil, l.omit)
	answer, err := l.send(ctx, p)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	if err != nil {
		return nil, upstream.Interrupted(ctx, err).Redact(l.secrets...)
	}
	if int64(len(said)) > limit {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("answer of more than %d bytes", limit))
	}
	if err := rawjson.CheckShape(said); err != nil {
		return nil, upstream.Fail(fault.UpstreamUnavailable, err)
	}
	if f := l.from(p.Call).Classify(http.StatusOK, answer.ContentType, said, nil); f != nil {
		return nil, f.Redact(l.secrets...)
	}
	return said, nil
}

// request builds the HTTP request. The URL is shared by all calls; transports
// do not change it.
func (l *Client) request(ctx context.Context, p Post) *http.Request {
	accept := "application/json"
	if p.Call.Stream {
		accept = "text/event-stream"
	}
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {accept},
		"User-Agent":   {userAgent},
	}
	maps.Copy(header, p.Header)
	l.addHeader(header)
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
		Body:          io.NopCloser(p.Call.Body.Reader()),
		ContentLength: int64(p.Call.Body.Len()),
		GetBody: func() (io.ReadCloser, error) {
			return io.NopCloser(p.Call.Body.Reader()), nil
		},
	}
	return req.WithContext(ctx)
}

// judge reads the head of an answer: nil for one that looks right, else the
// failure, for which it reads a bounded part of the body.
func (l *Client) judge(resp *http.Response, from *body, call chatcall.Call) *upstream.Failure {
	contentType := resp.Header.Get("Content-Type")
	ok := resp.StatusCode >= 200 && resp.StatusCode < 300
	if ok && rightType(contentType, call.Stream) && plain(resp.Header) {
		return nil
	}
	said := from.beginning(maxErrorBody, errorBodyWait)
	said = l.hide(said)
	if resp.Header.Get("Date") == "" { // Retry-After may be a date, which counts from it
		resp.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	f := l.from(call).Classify(resp.StatusCode, contentType, said, resp.Header)
	if f == nil { // a good-looking answer of another kind than we asked for
		f = upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("unexpected content type %q", contentType))
		f.Status = resp.StatusCode
	}
	f.Used = upstream.TokensOf(usage.Reported(call.Form, said))
	return f.Redact(l.secrets...)
}

// from is who answers a call.
func (l *Client) from(call chatcall.Call) upstream.Source {
	s := l.source
	s.Model = call.Model
	return s
}

// rightType reports whether a content type is the one that was asked for.
func rightType(contentType string, stream bool) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	if stream {
		return kind == "text/event-stream"
	}
	return kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json")
}

// plain reports whether the body is not compressed. We ask for none, and could
// not read it.
func plain(h http.Header) bool {
	encoding := h.Get("Content-Encoding")
	return encoding == "" || strings.EqualFold(encoding, "identity")
}
