// Package openai owns the speech with OpenAI and every vendor that is
// compatible with it: the request's address and headers, and the judgement of
// an answer's head. Bodies pass through untouched in both directions.
//
// Invariants:
//   - One call is sent at most once. The transport repeats it only where
//     nothing of it was written (see idempotencyHeader).
//   - The line's credential goes to the line's base address alone: redirects
//     are not followed, no proxy of the environment is used.
//   - Nothing is read without a bound of size and time.
package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/wire"
)

// Provider is the adapter's name in the catalog.
const Provider = "openai"

// defaultBaseURL is used by lines that name none.
const defaultBaseURL = "https://api.openai.com/v1"

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

// Options are what the adapters of a process share.
type Options struct {
	// Transport carries the calls; required. It must neither follow redirects
	// nor repeat requests; NewTransport makes the one to use.
	Transport http.RoundTripper
}

// Info describes the provider for the catalog. A key is not demanded, since
// many compatible servers of one's own network take none.
func Info() upstream.Info {
	return upstream.Info{
		Kinds:          []string{"chat"},
		Forms:          []wire.Form{wire.FormChat},
		DefaultBaseURL: defaultBaseURL,
		CheckOptions:   checkOptions,
	}
}

// checkOptions refuses every option: this provider has none.
func checkOptions(options map[string]any) error {
	for name := range options {
		return fmt.Errorf("unknown option %q: provider %s takes none", name, Provider)
	}
	return nil
}

// Adapter speaks for one line. It is safe for concurrent use.
type Adapter struct {
	transport http.RoundTripper
	chat      *url.URL
	host      string
	key       string
	bearer    []string
}

// New makes the adapter of a line. It fails when the base address is no
// http(s) URL with a host, or has credentials or a query in it.
func New(t upstream.Target, o Options) (*Adapter, error) {
	base := t.BaseURL
	if base == "" {
		base = defaultBaseURL
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" ||
		u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("line %s: base_url is not a plain http(s) address", t.Line)
	}
	if err := checkOptions(t.Options); err != nil {
		return nil, fmt.Errorf("line %s: %w", t.Line, err)
	}
	a := &Adapter{
		transport: o.Transport,
		chat:      u.JoinPath("chat", "completions"),
		host:      u.Host,
		key:       t.Key,
	}
	if t.Key != "" {
		a.bearer = []string{"Bearer " + t.Key}
	}
	return a, nil
}

// Chat implements upstream.Adapter for the chat form.
func (a *Adapter) Chat(ctx context.Context, c upstream.Call) (*upstream.Answer, error) {
	if c.Form != wire.FormChat {
		return nil, upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("provider %s does not speak the form %q", Provider, c.Form))
	}
	ctx, cancel := context.WithCancel(ctx)
	resp, err := a.transport.RoundTrip(a.request(ctx, c))
	if err != nil {
		f := upstream.Interrupted(ctx, err).Redact(a.key)
		cancel()
		return nil, f
	}
	from := &body{from: resp.Body, cancel: cancel}
	if f := judge(resp, from, c.Stream, a.key); f != nil {
		from.Close()
		return nil, f
	}
	return &upstream.Answer{Body: from, ContentType: resp.Header.Get("Content-Type"), Stream: c.Stream}, nil
}

// request builds the HTTP request. The URL is shared by all calls; transports
// do not change it.
func (a *Adapter) request(ctx context.Context, c upstream.Call) *http.Request {
	accept := "application/json"
	if c.Stream {
		accept = "text/event-stream"
	}
	header := http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {accept},
		"User-Agent":   {userAgent},
	}
	if a.bearer != nil {
		header["Authorization"] = a.bearer
	}
	if c.IdempotencyKey != "" {
		header[idempotencyHeader] = []string{c.IdempotencyKey}
	}
	req := &http.Request{
		Method:        http.MethodPost,
		URL:           a.chat,
		Host:          a.host,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(c.Body)),
		ContentLength: int64(len(c.Body)),
		GetBody: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(c.Body)), nil
		},
	}
	return req.WithContext(ctx)
}

// judge reads the head of an answer: nil for one that looks right, else the
// failure, for which it reads a bounded part of the body.
func judge(resp *http.Response, from *body, stream bool, key string) *upstream.Failure {
	contentType := resp.Header.Get("Content-Type")
	ok := resp.StatusCode >= 200 && resp.StatusCode < 300
	if ok && rightType(contentType, stream) && plain(resp.Header) {
		return nil
	}
	said := from.beginning(maxErrorBody, errorBodyWait)
	if key != "" {
		said = bytes.ReplaceAll(said, []byte(key), []byte("[redacted]"))
	}
	f := upstream.Classify(resp.StatusCode, contentType, said, resp.Header)
	if f == nil { // a good-looking answer of another kind than we asked for
		f = upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("unexpected content type %q", contentType))
		f.Status = resp.StatusCode
	}
	return f.Redact(key)
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
