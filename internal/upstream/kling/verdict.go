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

// answer returns the data of a successful response.
func answer(reply *exchange.Reply) (gjson.Result, bool) {
	if !reply.OK() || !gjson.ValidBytes(reply.Body) {
		return gjson.Result{}, false
	}
	doc := gjson.ParseBytes(reply.Body)
	return doc.Get("data"), doc.Get("code").Raw == "0"
}

// read returns the data of a successful response to a submission, or the failure.
func read(kind string, reply *exchange.Reply) (gjson.Result, *upstream.JobFailure) {
	data, ok := answer(reply)
	if ok {
		return data, nil
	}
	return data, reply.Redact(submitFailure(kind, reply))
}

// known reports whether Kling already has a task with this key, from an earlier call.
func known(reply *exchange.Reply) bool {
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
	case known(reply):
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

// words matches Kling's messages about a task stopped by its review, because Kling has no code for
// such a task.
var words = regexp.MustCompile(`(?i)risk|sensitive|polic|moderat|violat|inappropriate|prohibited`)

// readTask returns the status of a task. An unknown status counts as running.
func readTask(job jobcall.Task, t ticket, reply *exchange.Reply) (*jobcall.TaskStatus, *upstream.JobFailure) {
	data, ok := answer(reply)
	gone := t.series != "" && reply.Status == http.StatusNotFound && reply.TaskUnknown()
	if !ok && !gone {
		return nil, reply.PollFailure()
	}
	task, status, message := data, "task_status", "task_status_msg"
	if t.series == "" {
		if !data.IsArray() {
			return nil, reply.PollFailure()
		}
		task, status, message = data.Get("0"), "status", "message"
		gone = !task.Exists()
	}
	if gone {
		return nil, upstream.UnknownTask(job.Kind, "the provider no longer knows the task")
	}
	switch task.Get(status).String() {
	case "":
		return nil, reply.PollFailure()
	case "succeed", "succeeded":
		links := task.Get("[outputs.#.url,task_result.images.#.url,task_result.videos.#.url]|@flatten")
		return exchange.SuccessStatus(job.Kind, t.String(), links, max(job.Count, 1))
	case "failed":
		why := task.Get(message).String()
		if words.MatchString(why) {
			return nil, upstream.ModerationFailure(job.Kind, why, false)
		}
		return nil, reply.TaskFailure(job.Kind, "", why)
	}
	return &jobcall.TaskStatus{Ticket: t.String()}, nil
}
