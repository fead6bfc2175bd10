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

// vendorHost is what the names of the vendor's hosts end with.
const vendorHost = "bfl.ai"

// polling matches a ticket's parts: a whole address, or, on the line's own host,
// its path and query.
var polling = regexp.MustCompile(`^(https://[A-Za-z0-9.-]+)?(/[A-Za-z0-9._~-]+)+(\?[A-Za-z0-9._~=&%:-]*)?$`)

// ticket makes a ticket of a polling address; false where the credential may not
// go there.
func (a *Adapter) ticket(address string) (string, bool) {
	ticket := address
	if u, ok := a.Line.Own(address); ok {
		ticket = u.RequestURI()
	}
	_, ok := a.address(ticket)
	return ticket, ok
}

// address is where a task is asked about; false for what is no ticket, and for
// one that leads to a host which the credential may not go to.
func (a *Adapter) address(ticket string) (*url.URL, bool) {
	if len(ticket) > maxAddress || !polling.MatchString(ticket) || strings.Contains(ticket, "..") {
		return nil, false
	}
	base := a.Line.URL()
	u, err := base.Parse(ticket)
	if err != nil {
		return nil, false
	}
	if _, own := a.Line.Own(u.String()); own {
		return u, true
	}
	return u, vendors(base) && vendors(u)
}

// vendors tells whether an address is at the vendor, where nobody can listen.
func vendors(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && u.Port() == "" && u.User == nil && (host == vendorHost || strings.HasSuffix(host, "."+vendorHost))
}

// Poll implements jobcall.Generator.
func (a *Adapter) Poll(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	return exchange.PollEach(ticket, func(one string) (*jobcall.TaskStatus, error) { return a.ask(ctx, w, one) })
}

// ask asks about one task.
func (a *Adapter) ask(ctx context.Context, w jobcall.Task, ticket string) (*jobcall.TaskStatus, error) {
	address, ok := a.address(ticket)
	if !ok {
		return nil, upstream.Vanished(w.Kind, "no polling address")
	}
	reply, err := a.Line.Asked(ctx, w.Kind, exchange.JobCall{Method: http.MethodGet, URL: address, Header: a.Header, Limit: maxAnswer})
	if err != nil {
		return nil, err
	}
	said := gjson.ParseBytes(reply.Body)
	word := said.Get("status")
	if word.Type != gjson.String {
		word = said.Get("state")
	}
	if word.Type != gjson.String || word.Str == "" {
		return nil, reply.Silent()
	}
	if failure := verdict(w.Kind, reply, word.Str, said.Get("details")); failure != nil {
		return nil, reply.Redact(failure)
	}
	if !strings.EqualFold(word.Str, "ready") {
		return &jobcall.TaskStatus{Ticket: ticket}, nil
	}
	sample := said.Get("result.sample")
	if sample.Type != gjson.String || sample.Str == "" {
		return nil, upstream.Nothing(w.Kind, "ready without a sample")
	}
	return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{{Ref: sample.Str}}}, nil
}

// verdict judges a task's status; nil: it goes on, or is ready. A status that the
// provider may invent is taken for one of a task that goes on: the line's longest
// wait ends it.
func verdict(kind string, reply *exchange.Reply, status string, details gjson.Result) *upstream.JobFailure {
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
		return upstream.Moderated(kind, told(status, words), false)
	case "content moderated":
		return upstream.Moderated(kind, told(status, words), true)
	case "error", "failed":
		if reasons.IsArray() {
			return upstream.Moderated(kind, told("moderated", words), false)
		}
		return reply.Ended(kind, "", words)
	case "task not found":
		return upstream.Vanished(kind, "the provider no longer knows the task")
	}
	return nil
}

// told is a status with what is said of it.
func told(status, words string) string {
	if words == "" {
		return status
	}
	return status + ": " + words
}
