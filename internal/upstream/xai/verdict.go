package xai

import (
	"fmt"
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/fault"
	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Errors that only xAI's message distinguishes.
var (
	reviewWords  = regexp.MustCompile(`(?i)content moderation|usage guidelines|SAFETY_CHECK_TYPE`)
	accountWords = regexp.MustCompile(`(?i)incorrect api key|credits|spending limit`)
)

// message returns the message of an error, in any of its three formats.
func message(doc gjson.Result) string {
	e := doc.Get("error")
	if e.IsObject() {
		return e.Get("message").String()
	}
	return e.String()
}

// submitFailure returns the failure of a rejected submission. A good status without a task ID may have
// started a task.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	t := reply.SubmitFailure(kind)
	text := ""
	if gjson.ValidBytes(reply.Body) {
		text = message(gjson.ParseBytes(reply.Body))
	}
	refusal := reply.Status == http.StatusBadRequest || reply.Status == http.StatusForbidden || reply.Status == http.StatusTooManyRequests
	switch {
	case reply.OK():
		t.Lost = kind == upstream.KindVideo && text == ""
	case refusal && reviewWords.MatchString(text):
		t = upstream.ModerationFailure(kind, text, false)
		t.Status = reply.Status
	case refusal && accountWords.MatchString(text):
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("xai: %.200s", text))
		f.Health, f.Unproven, f.Status = upstream.HealthCredential, true, reply.Status
		t = upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return reply.Redact(t)
}

// taskFailure returns the failure of a clip reported as failed.
func taskFailure(kind string, reply *exchange.Reply, code, text string) *upstream.JobFailure {
	if reviewWords.MatchString(text) {
		return upstream.ModerationFailure(kind, text, false)
	}
	return reply.TaskFailure(kind, code, text)
}
