package bfl

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// maxAddress bounds a polling address, in bytes.
const maxAddress = 600

// vendorHost is the domain of the vendor's hosts.
const vendorHost = "bfl.ai"

// ticketPattern matches a part of a ticket: a whole address or, on the line's own host, a path and a
// query.
var ticketPattern = regexp.MustCompile(`^(https://[A-Za-z0-9.-]+)?(/[A-Za-z0-9._~-]+)+(\?[A-Za-z0-9._~=&%:-]*)?$`)

// ticket returns the ticket for a polling address. It returns false if the credential must not be
// sent there.
func (a *Adapter) ticket(address string) (string, bool) {
	ticket := address
	if u, ok := a.Line.ParseOwnURL(address); ok {
		ticket = u.RequestURI()
	}
	_, ok := a.address(ticket)
	return ticket, ok
}

// address returns the polling address of a task. It returns false for an invalid ticket and for an
// address on a host not allowed to get the credential.
func (a *Adapter) address(ticket string) (*url.URL, bool) {
	if len(ticket) > maxAddress || !ticketPattern.MatchString(ticket) || strings.Contains(ticket, "..") {
		return nil, false
	}
	base := a.Line.URL()
	u, err := base.Parse(ticket)
	if err != nil {
		return nil, false
	}
	if _, own := a.Line.ParseOwnURL(u.String()); own {
		return u, true
	}
	return u, isVendor(base) && isVendor(u)
}

// isVendor reports whether an address is on a vendor host and uses https.
func isVendor(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && u.Port() == "" && u.User == nil && (host == vendorHost || strings.HasSuffix(host, "."+vendorHost))
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	return exchange.PollEach(ticket, func(one string) (*jobcall.TaskStatus, error) { return a.pollOne(ctx, task, one) })
}

// pollOne queries one task.
func (a *Adapter) pollOne(ctx context.Context, task jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	address, ok := a.address(ticket)
	if !ok {
		return nil, upstream.UnknownTask(task.Kind, "no polling address")
	}
	reply, err := a.Line.QueryTask(ctx, task.Kind, exchange.JobCall{Method: http.MethodGet, URL: address, Header: a.Header})
	if err != nil {
		return nil, err
	}
	doc := gjson.ParseBytes(reply.Body)
	word := doc.Get("status")
	if word.Type != gjson.String {
		word = doc.Get("state")
	}
	if word.Type != gjson.String || word.Str == "" {
		return nil, reply.PollFailure()
	}
	if failure := statusFailure(task.Kind, reply, word.Str, doc.Get("details")); failure != nil {
		return nil, reply.Redact(failure)
	}
	if !strings.EqualFold(word.Str, "ready") {
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
	status, failure := exchange.SuccessStatus(task.Kind, ticket, doc.Get("result.sample"), 1)
	if failure != nil {
		return nil, failure
	}
	return status, nil
}

// statusFailure returns the failure of a task's status, or nil if the task is running or ready. An
// unknown status counts as running; the line's longest wait ends the task.
func statusFailure(kind string, reply *exchange.Reply, status string, details gjson.Result) *upstream.JobFailure {
	reasons := details.Get("Moderation Reasons")
	words := details.String()
	if reasons.IsArray() {
		var all []string
		for _, r := range reasons.Array() {
			all = append(all, r.String())
		}
		words = strings.Join(all, ", ")
	}
	switch strings.ToLower(status) {
	case "request moderated":
		return upstream.ModerationFailure(kind, withReason(status, words), false)
	case "content moderated":
		return upstream.ModerationFailure(kind, withReason(status, words), true)
	case "error", "failed":
		if reasons.IsArray() {
			return upstream.ModerationFailure(kind, withReason("moderated", words), false)
		}
		return reply.TaskFailure(kind, "", words)
	case "task not found":
		return upstream.UnknownTask(kind, "the provider no longer knows the task")
	}
	return nil
}

// withReason joins a status and its explanation.
func withReason(status, words string) string {
	if words == "" {
		return status
	}
	return status + ": " + words
}
