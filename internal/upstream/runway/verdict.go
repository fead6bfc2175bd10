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

// submitFailure returns the failure of a rejected submission. An account without credits gets a 400,
// distinguished by its message. A good status without a task ID may have started a task.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	t := reply.SubmitFailure(kind)
	errObject := gjson.Result{}
	if gjson.ValidBytes(reply.Body) {
		errObject = gjson.GetBytes(reply.Body, "error")
	}
	message := strings.ToLower(errObject.String())
	switch {
	case reply.OK():
		t.Lost = !errObject.Exists()
	case reply.Status == http.StatusBadRequest && strings.Contains(message, "credits"):
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("runway: %.200s", message))
		f.Health, f.Unproven, f.Status = upstream.HealthCredential, true, reply.Status
		t = upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return reply.Redact(t)
}

// readTask returns the status of a task. An unknown status counts as running, and so does a task
// that waits for the account's concurrency (THROTTLED).
func readTask(task jobcall.Task, ticket string, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	doc := gjson.ParseBytes(reply.Body)
	switch doc.Get("status").String() {
	case "":
		return nil, reply.PollFailure()
	case "SUCCEEDED":
		return exchange.SuccessStatus(task.Kind, ticket, doc.Get("output"), 1)
	case "FAILED":
		return nil, taskFailure(task.Kind, reply, doc.Get("failureCode").String(), doc.Get("failure").String())
	case "CANCELLED":
		return nil, reply.TaskFailure(task.Kind, "", "cancelled at the provider")
	}
	return &jobcall.TaskStatus{Ticket: ticket, Wait: pollInterval}, nil
}

// taskFailure returns the failure of a failed task. A task stopped by the review is not retried. After
// an internal error, a retry at once may succeed.
func taskFailure(kind string, reply *exchange.Reply, code, message string) *upstream.JobFailure {
	if strings.Contains(code, "SAFETY") {
		t := upstream.ModerationFailure(kind, message, false)
		if kind == upstream.KindVideo && strings.HasSuffix(code, "AUDIO") {
			t.Param = "audio"
		}
		return t
	}
	t := reply.TaskFailure(kind, code, message)
	if code == "" || strings.HasPrefix(code, "INTERNAL") || code == "INPUT_PREPROCESSING.INTERNAL" || code == "THIRD_PARTY.UNAVAILABLE" {
		t.Next = upstream.NextSame
	}
	return t
}
