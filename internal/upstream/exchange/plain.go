package exchange

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// Plain is the common part of most image and video adapters, which embed it: a key in a header, no
// chat, results as links or in the response, and no call to cancel a task.
type Plain struct {
	chatcall.NoChat
	// Line carries the calls; Header, with the key in it, goes out with them.
	Line   *Client
	Header http.Header
}

// OpenPlain opens a line like Open. The key is sent in the header called name, as a bearer token if
// name is Authorization.
func OpenPlain(t upstream.Target, provider upstream.Info, transport http.RoundTripper, name string) (Plain, error) {
	line, err := Open(t, provider, transport)
	if err != nil {
		return Plain{}, err
	}
	p := Plain{Line: line, Header: http.Header{}}
	switch {
	case t.Key == "":
	case name == "Authorization":
		p.Header.Set(name, "Bearer "+t.Key)
	default:
		p.Header.Set(name, t.Key)
	}
	return p, nil
}

// OpenAdapter opens a line like OpenPlain and returns wrap's adapter.
func OpenAdapter[A any](
	t upstream.Target, provider upstream.Info, transport http.RoundTripper, header string, wrap func(Plain) *A,
) (*A, error) {
	plain, err := OpenPlain(t, provider, transport, header)
	if err != nil {
		return nil, err
	}
	return wrap(plain), nil
}

// JobInfo describes an image or video provider with a required key.
func JobInfo(baseURL string, checkOptions func(map[string]any) error, kinds ...string) upstream.Info {
	return upstream.Info{Kinds: kinds, DefaultBaseURL: baseURL, NeedsKey: true, CheckOptions: checkOptions}
}

// Fetch implements jobcall.Generator. The links need no credential.
func (p *Plain) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	if len(r.Data) > 0 {
		return &jobcall.Download{Body: io.NopCloser(bytes.NewReader(r.Data)), Type: r.Type, Size: int64(len(r.Data))}, nil
	}
	return p.Line.Download(ctx, r.Ref, nil)
}

// Cancel implements jobcall.Generator: the provider has no such call.
func (p *Plain) Cancel(context.Context, jobcall.Task, string) error { return nil }

// QueryTask sends a query about a task and returns the reply if it is a JSON document. The error
// reports either a vanished task or a query without an answer; the latter says nothing about the
// task.
func (l *Client) QueryTask(ctx context.Context, kind string, r JobCall) (*Reply, error) {
	reply, err := l.Query(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case reply.Unknown():
		return nil, upstream.Vanished(kind, "the provider no longer knows the task")
	case !reply.Good() || !gjson.ValidBytes(reply.Body):
		return nil, reply.Silent()
	}
	return reply, nil
}

// Stop cancels a task. A task unknown to the provider counts as cancelled.
func (l *Client) Stop(ctx context.Context, r JobCall) error {
	reply, err := l.Query(ctx, r)
	if err == nil && !reply.Good() && !reply.Unknown() {
		return reply.Silent()
	}
	return err
}

// Named returns the ticket from a field of a successful submission's response.
func (r *Reply) Named(field string) (string, *upstream.JobFailure) {
	ticket := gjson.GetBytes(r.Body, field).String()
	if !gjson.ValidBytes(r.Body) || !Ticket(ticket) {
		return "", upstream.Nameless(field)
	}
	return ticket, nil
}
