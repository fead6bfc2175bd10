package exchange

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/chatcall"
	"tollgate/internal/upstream/jobcall"
)

// Plain is embedded by most image and video adapters. It is for providers with a key in a header, no
// chat, results as links or in the response, and no call to cancel a task.
type Plain struct {
	chatcall.NoChat
	// Line carries the calls. Header contains the key and is sent with every call.
	Line   *Client
	Header http.Header
	// Limit is the JobCall.Limit of the calls.
	Limit int64
}

// OpenPlain opens a line like Open. The key is sent in the header name, as a bearer token if name
// is Authorization.
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

// Blocks implements jobcall.Generator. It returns false, because tasks are polled.
func (p *Plain) Blocks(jobcall.Task) bool { return false }

// Fetch implements jobcall.Generator. The links need no credential.
func (p *Plain) Fetch(ctx context.Context, _ jobcall.Task, r jobcall.Result) (*jobcall.Download, error) {
	return p.Line.Fetch(ctx, r, nil)
}

// Cancel implements jobcall.Generator. It is a no-op, because the provider cannot cancel tasks.
func (p *Plain) Cancel(context.Context, jobcall.Task, string) error { return nil }

// Call returns a call to a path below the base address.
func (p *Plain) Call(method string, path ...string) JobCall {
	return JobCall{Method: method, URL: p.Line.URL(path...), Header: p.Header, Limit: p.Limit}
}

// SubmitJSON submits a task like Client.Submit, with body encoded as JSON.
func (p *Plain) SubmitJSON(ctx context.Context, kind string, body any, path ...string) (*Reply, error) {
	call := p.Call(http.MethodPost, path...)
	var err error
	if call.Body, err = json.Marshal(body); err != nil {
		return nil, upstream.Unsuitable(kind, "params: %w", err)
	}
	return p.Line.Submit(ctx, call)
}

// QueryTask sends a query about a task and returns the reply if it is a JSON document. The ticket
// is the last segment of the address, after path. If the task is unknown, the error is an
// upstream.UnknownTask. Any other error has NextPoll and does not affect the task.
func (p *Plain) QueryTask(ctx context.Context, kind, ticket string, path ...string) (*Reply, error) {
	if !IsTicket(ticket) {
		return nil, upstream.UnknownTask(kind, "the ticket is not a task ID")
	}
	return p.Line.QueryTask(ctx, kind, p.Call(http.MethodGet, append(path, ticket)...))
}

// QueryTask is Plain.QueryTask for any call.
func (c *Client) QueryTask(ctx context.Context, kind string, r JobCall) (*Reply, error) {
	reply, err := c.Query(ctx, r)
	switch {
	case err != nil:
		return nil, err
	case reply.TaskUnknown():
		return nil, upstream.UnknownTask(kind, "the provider no longer knows the task")
	case !reply.OK() || !gjson.ValidBytes(reply.Body):
		return nil, reply.PollFailure()
	}
	return reply, nil
}

// StopTask cancels a task. An invalid ticket is a no-op.
func (p *Plain) StopTask(ctx context.Context, ticket, method string, path ...string) error {
	if !IsTicket(ticket) {
		return nil
	}
	return p.Line.Stop(ctx, p.Call(method, path...))
}

// Stop cancels a task. A task unknown to the provider counts as cancelled.
func (c *Client) Stop(ctx context.Context, r JobCall) error {
	reply, err := c.Query(ctx, r)
	if err == nil && !reply.OK() && !reply.TaskUnknown() {
		return reply.PollFailure()
	}
	return err
}

// ReadTicket returns the ticket from a field of a successful submission's response.
func (r *Reply) ReadTicket(field string) (string, *upstream.JobFailure) {
	ticket := gjson.GetBytes(r.Body, field).String()
	if !gjson.ValidBytes(r.Body) || !IsTicket(ticket) {
		return "", upstream.MissingTicket(field)
	}
	return ticket, nil
}

// Links returns the results at the addresses in list, at most limit.
func Links(list []gjson.Result, limit int) []jobcall.Result {
	var results []jobcall.Result
	for _, link := range list {
		if link.Type == gjson.String && link.Str != "" && len(results) < limit {
			results = append(results, jobcall.Result{Ref: link.Str})
		}
	}
	return results
}

// SuccessStatus returns the status of a successful task with at most limit results. links is an address
// or a list of addresses.
func SuccessStatus(kind, ticket string, links gjson.Result, limit int) (*jobcall.TaskStatus, *upstream.JobFailure) {
	results := Links(links.Array(), limit)
	if results == nil {
		return nil, upstream.EmptyResult(kind, "succeeded without a result")
	}
	return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: results}, nil
}
