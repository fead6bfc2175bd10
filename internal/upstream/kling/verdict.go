package kling

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// responseData returns the data of a successful response.
func responseData(reply *exchange.Reply) (gjson.Result, bool) {
	if !reply.OK() || !gjson.ValidBytes(reply.Body) {
		return gjson.Result{}, false
	}
	doc := gjson.ParseBytes(reply.Body)
	return doc.Get("data"), doc.Get("code").Raw == "0"
}

// readSubmission returns the data of a successful response to a submission, or the failure.
func readSubmission(kind string, reply *exchange.Reply) (gjson.Result, *upstream.JobFailure) {
	data, ok := responseData(reply)
	if ok {
		return data, nil
	}
	return data, reply.Redact(submitFailure(kind, reply))
}

// isDuplicate reports whether Kling already has a task with this key, from an earlier call.
func isDuplicate(reply *exchange.Reply) bool {
	return gjson.ValidBytes(reply.Body) && gjson.GetBytes(reply.Body, "code").Int() == 1201 &&
		strings.Contains(gjson.GetBytes(reply.Body, "message").String(), "already exists")
}

// submitFailure returns the failure of a rejected submission. Kling's code outweighs the status.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	t := reply.SubmitFailure(kind)
	code, message := gjson.GetBytes(reply.Body, "code").Int(), gjson.GetBytes(reply.Body, "message").String()
	if !gjson.ValidBytes(reply.Body) {
		code, message = 0, ""
	}
	failure := func(health upstream.Health) *upstream.JobFailure {
		f := upstream.Fail(fault.UpstreamUnavailable, upstream.ProviderError(strconv.FormatInt(code, 10), message))
		f.Health, f.Status = health, reply.Status
		return upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	switch {
	case isDuplicate(reply):
		t = failure(upstream.HealthNone)
		t.Lost = true
	case code >= 1000 && code <= 1004, code >= 1100 && code <= 1103, code == 1304:
		t = failure(upstream.HealthCredential)
	case code == 1203:
		t = failure(upstream.HealthModel)
	case code == 1300, code == 1301:
		t = upstream.ModerationFailure(kind, message, false)
		t.Status = reply.Status
	case code == 5002:
		t.Lost = true // the task may have been accepted
	case reply.OK() && code == 0:
		t.Lost = !gjson.GetBytes(reply.Body, "error").Exists()
	}
	return t
}

// moderationWords matches Kling's messages about a task stopped by its review, because Kling has no code for
// such a task.
var moderationWords = regexp.MustCompile(`(?i)risk|sensitive|polic|moderat|violat|inappropriate|prohibited`)

// readTask returns the status of a task. An unknown status counts as running.
func readTask(job jobcall.Task, t ticket, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	data, ok := responseData(reply)
	missing := t.series != "" && reply.Status == http.StatusNotFound && reply.TaskUnknown()
	if !ok && !missing {
		return nil, reply.PollFailure()
	}
	task, status, message := data, "task_status", "task_status_msg"
	if t.series == "" {
		if !data.IsArray() {
			return nil, reply.PollFailure()
		}
		task, status, message = data.Get("0"), "status", "message"
		missing = !task.Exists()
	}
	if missing {
		return nil, upstream.UnknownTask(job.Kind, "the provider no longer knows the task")
	}
	switch task.Get(status).String() {
	case "":
		return nil, reply.PollFailure()
	case "succeed", "succeeded":
		links := task.Get("[outputs.#.url,task_result.images.#.url,task_result.videos.#.url]|@flatten")
		return exchange.SuccessStatus(job.Kind, t.String(), links, max(job.Count, 1))
	case "failed":
		reason := task.Get(message).String()
		if moderationWords.MatchString(reason) {
			return nil, upstream.ModerationFailure(job.Kind, reason, false)
		}
		return nil, reply.TaskFailure(job.Kind, "", reason)
	}
	return &jobcall.TaskStatus{Ticket: t.String()}, nil
}
