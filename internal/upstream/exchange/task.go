package exchange

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/jobcall"
	"tollgate/internal/wire/rawjson"
)

// Bounds of a response about a job. Real ones have a few hundred values, and adapters allocate
// memory for each entry of a list.
const (
	defaultLimit = 1 << 20 // bytes
	maxValues    = 50_000
)

// JobCall is one call about an image or video job. The response is read completely, whatever its
// status.
type JobCall struct {
	Method string // GET, POST, PUT or DELETE
	// URL is from Client.URL, or an address below the base address from a response of the provider.
	URL *url.URL
	// Header holds the headers in addition to those of every call. It is read-only.
	Header http.Header
	// Body is the request body of type ContentType; nil for a request without a body.
	Body        []byte
	ContentType string // empty means application/json
	// Form is sent instead of Body if it is not nil.
	Form *Multipart
	// Limit is the maximum length of the response, in bytes. Zero means 1 MiB, enough for the
	// addresses of results.
	Limit int64
	// AcquireRead bounds the number of large responses read at a time (jobcall.Task). It is nil for
	// small responses.
	AcquireRead func(ctx context.Context) (done func(), err error)
}

// Reply is a response. The adapter interprets its status and body.
type Reply struct {
	Status  int
	Header  http.Header
	Body    []byte
	secrets []string // the line's secrets
	source  upstream.Source
}

// SubmitFailure calls Source.SubmitFailure with the reply.
func (r *Reply) SubmitFailure(kind string) *upstream.JobFailure {
	return r.Redact(r.source.SubmitFailure(kind, r.Status, r.Header.Get("Content-Type"), r.Body, r.Header))
}

// SubmitFailureAs calls Source.SubmitFailureAs with the status and headers of the reply.
func (r *Reply) SubmitFailureAs(kind, code, message string) *upstream.JobFailure {
	return r.Redact(r.source.SubmitFailureAs(kind, r.Status, r.Header, code, message))
}

// TaskFailure calls Source.TaskFailure for a task that the reply reports as failed.
func (r *Reply) TaskFailure(kind, code, message string) *upstream.JobFailure {
	return r.Redact(r.source.TaskFailure(kind, code, message))
}

// Redact removes the line's credential from a failure created from the reply, because Body may
// contain the credential masked or escaped.
func (r *Reply) Redact(t *upstream.JobFailure) *upstream.JobFailure { return t.Redact(r.secrets...) }

// OK reports whether the status is 2xx.
func (r *Reply) OK() bool { return r.Status >= 200 && r.Status < 300 }

// TaskUnknown reports whether the provider does not know the task of the query. An HTML page does not
// count, because it does not come from the provider's API.
func (r *Reply) TaskUnknown() bool {
	gone := r.Status == http.StatusNotFound || r.Status == http.StatusGone
	return gone && !bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("<"))
}

// Submit sends a submission. If the response does not arrive, the error is an upstream.LostAnswer. If
// a file of the form cannot be read, the error is an upstream.UnreadableFile.
func (c *Client) Submit(ctx context.Context, r JobCall) (*Reply, error) {
	if r.Body != nil && (r.ContentType == "" || r.ContentType == "application/json") {
		r.Body = rawjson.Override[json.RawMessage](rawjson.Pieces{r.Body}, nil, c.omit).Bytes()
	}
	reply, err := c.do(ctx, r)
	if fileErr := (fileError{}); errors.As(err, &fileErr) {
		return nil, upstream.UnreadableFile(fileErr.err).Redact(c.secrets...)
	}
	if err != nil {
		return nil, upstream.LostAnswer(ctx, err).Redact(c.secrets...)
	}
	return reply, nil
}

// Query sends a query about a task. The error is a *upstream.JobFailure with NextPoll.
func (c *Client) Query(ctx context.Context, r JobCall) (*Reply, error) {
	reply, err := c.do(ctx, r)
	if err != nil {
		return nil, upstream.FailJob(upstream.ConnectionFailure(ctx, err), fault.UpstreamError, upstream.NextPoll).Redact(c.secrets...)
	}
	return reply, nil
}

// PollFailure returns the failure of a query without a usable response. The next step is another poll.
// Classify decides the effect on the line's health.
func (r *Reply) PollFailure() *upstream.JobFailure {
	f := r.source.Classify(r.Status, r.Header.Get("Content-Type"), r.Body, r.Header)
	if f == nil {
		f = upstream.Fail(fault.UpstreamUnavailable, errors.New("the answer cannot be read"))
	}
	f.Rejection = nil
	return r.Redact(upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll))
}

func (c *Client) do(ctx context.Context, r JobCall) (*Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	header := http.Header{"Accept": {"application/json"}, "User-Agent": {userAgent}}
	if r.Body != nil {
		if r.ContentType == "" {
			r.ContentType = "application/json"
		}
		header["Content-Type"] = []string{r.ContentType}
	}
	maps.Copy(header, r.Header)
	c.addHeader(header)
	req := (&http.Request{Method: r.Method, URL: r.URL, Host: r.URL.Host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header}).WithContext(ctx)
	if r.Body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(r.Body)), nil }
	}
	if r.Form != nil {
		r.Form.attach(ctx, req)
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if r.AcquireRead != nil {
		done, err := r.AcquireRead(ctx)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	limit := cmp.Or(r.Limit, defaultLimit)
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("answer of more than %d bytes", limit)
	}
	if err := rawjson.CheckValues(body, maxValues); err != nil {
		if resp.StatusCode < 300 {
			return nil, err
		}
		body = nil // the status is sufficient
	}
	if resp.StatusCode >= 300 {
		body = c.redact(body)
	}
	upstream.Spend(ctx, body)
	return &Reply{Status: resp.StatusCode, Header: resp.Header, Body: body, secrets: c.secrets, source: c.source}, nil
}

// Fetch opens a result of a task. Only the line's own host gets header.
func (c *Client) Fetch(ctx context.Context, r jobcall.Result, header http.Header) (*jobcall.Download, error) {
	if len(r.Data) > 0 {
		return &jobcall.Download{Body: io.NopCloser(bytes.NewReader(r.Data)), Type: r.Type, Size: int64(len(r.Data))}, nil
	}
	return c.Download(ctx, r.Ref, header)
}

// maxHops bounds the redirects of a download.
const maxHops = 5

// errNoPublicTransport is the error of a download from another host if the line has no
// PublicTransport.
var errNoPublicTransport = errors.New("the result is not at the line's own host and port")

// Download opens a result at an address from the provider. An address with the line's own scheme,
// host and port is reached through the line's own transport and gets header, which has the
// credential. Every other address is reached through the line's PublicTransport, because another port
// of a private host may be a database. Redirects are followed, because result hosts redirect to their
// storage. The error is a *upstream.JobFailure with NextPoll.
func (c *Client) Download(ctx context.Context, address string, header http.Header) (*jobcall.Download, error) {
	pollFailure := func(f *upstream.Failure) error {
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextPoll).Redact(c.secrets...)
	}
	location, err := url.Parse(address)
	for range maxHops {
		if err != nil || (location.Scheme != "http" && location.Scheme != "https") || location.Host == "" {
			return nil, pollFailure(upstream.Fail(fault.UpstreamUnavailable, errors.New("the result's address is not an http(s) address")))
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
		if err != nil {
			return nil, pollFailure(upstream.Fail(fault.UpstreamUnavailable, err))
		}
		req.Header.Set("User-Agent", userAgent)
		transport := c.publicTransport
		if c.isOwnURL(location) {
			transport = c.transport
			maps.Copy(req.Header, header)
			c.addHeader(req.Header)
		}
		if transport == nil {
			return nil, pollFailure(upstream.Fail(fault.UpstreamUnavailable, errNoPublicTransport))
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return nil, pollFailure(upstream.ConnectionFailure(ctx, err))
		}
		if resp.StatusCode == http.StatusOK {
			return &jobcall.Download{Body: resp.Body, Type: resp.Header.Get("Content-Type"), Size: resp.ContentLength}, nil
		}
		resp.Body.Close()
		if resp.StatusCode < 300 || resp.StatusCode > 399 {
			f := upstream.Fail(fault.UpstreamUnavailable, errors.New("the host of the result rejected the link"))
			f.Status = resp.StatusCode
			return nil, pollFailure(f)
		}
		location, err = resp.Location()
		if err != nil {
			location = &url.URL{} // an empty address fails at the beginning of the loop
		}
	}
	return nil, pollFailure(upstream.Fail(fault.UpstreamUnavailable, errors.New("the result's host redirects without end")))
}
