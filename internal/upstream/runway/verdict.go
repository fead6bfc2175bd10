package runway

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// refused is the verdict on a submission that was not accepted. That the account
// has no credits left is said by a 400, in words alone. A good status without a
// name of the task may have begun one.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	t := reply.Refused(kind)
	said := gjson.Result{}
	if gjson.ValidBytes(reply.Body) {
		said = gjson.GetBytes(reply.Body, "error")
	}
	words := strings.ToLower(said.String())
	switch {
	case reply.Good():
		t.Lost = !said.Exists()
	case reply.Status == http.StatusBadRequest && strings.Contains(words, "credits"):
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("runway: %.200s", words))
		f.Health, f.Unproven, f.Status = upstream.HealthCredential, true, reply.Status
		t = upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return reply.Redact(t)
}

// readTask reads how a task is doing. A status that Runway may invent is taken
// for one of a task that goes on, as one that waits for our own concurrency
// (THROTTLED) is.
func readTask(w jobcall.Task, ticket string, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	switch {
	case reply.Unknown():
		return nil, upstream.Vanished(w.Kind, "the provider no longer knows the task")
	case !reply.Good() || !gjson.ValidBytes(reply.Body):
		return nil, reply.Silent()
	}
	said := gjson.ParseBytes(reply.Body)
	switch said.Get("status").String() {
	case "":
		return nil, reply.Silent()
	case "SUCCEEDED":
		for _, link := range said.Get("output").Array() {
			if link.Type == gjson.String && link.Str != "" {
				return &jobcall.TaskStatus{Ticket: ticket, Done: true, Results: []jobcall.Result{{Ref: link.Str}}}, nil
			}
		}
		return nil, upstream.Nothing(w.Kind, "succeeded without a result")
	case "FAILED":
		return nil, ended(w.Kind, reply, said.Get("failureCode").String(), said.Get("failure").String())
	case "CANCELLED":
		return nil, reply.Ended(w.Kind, "", "cancelled at the provider")
	}
	return &jobcall.TaskStatus{Ticket: ticket, Wait: pace}, nil
}

// ended is the verdict on a task that has failed. What the review stopped it
// would stop again; what broke inside may fare better at once.
func ended(kind string, reply *exchange.Reply, code, said string) *upstream.JobFailure {
	if strings.Contains(code, "SAFETY") {
		t := upstream.Moderated(kind, said, false)
		if kind == upstream.KindVideo && strings.HasSuffix(code, "AUDIO") {
			t.Param = "audio"
		}
		return t
	}
	t := reply.Ended(kind, code, said)
	if code == "" || strings.HasPrefix(code, "INTERNAL") || code == "INPUT_PREPROCESSING.INTERNAL" || code == "THIRD_PARTY.UNAVAILABLE" {
		t.Next = upstream.NextSame
	}
	return t
}
