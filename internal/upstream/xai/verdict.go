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

// What xAI says in words alone.
var (
	reviewWords  = regexp.MustCompile(`(?i)content moderation|usage guidelines|SAFETY_CHECK_TYPE`)
	accountWords = regexp.MustCompile(`(?i)incorrect api key|credits|spending limit`)
)

// message is what an error says, in any of its three shapes.
func message(said gjson.Result) string {
	e := said.Get("error")
	if e.IsObject() {
		return e.Get("message").String()
	}
	return e.String()
}

// refused is the verdict on a submission that was not accepted. A good status
// without a name of the task may have begun one.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	t := reply.Refused(kind)
	said := ""
	if gjson.ValidBytes(reply.Body) {
		said = message(gjson.ParseBytes(reply.Body))
	}
	refusal := reply.Status == http.StatusBadRequest || reply.Status == http.StatusForbidden || reply.Status == http.StatusTooManyRequests
	switch {
	case reply.Good():
		t.Lost = kind == upstream.KindVideo && said == ""
	case refusal && reviewWords.MatchString(said):
		t = upstream.Moderated(kind, said, false)
		t.Status = reply.Status
	case refusal && accountWords.MatchString(said):
		f := upstream.Fail(fault.UpstreamUnavailable, fmt.Errorf("xai: %.200s", said))
		f.Health, f.Unproven, f.Status = upstream.HealthCredential, true, reply.Status
		t = upstream.FailJob(f, fault.UpstreamError, upstream.NextLine)
	}
	return reply.Redact(t)
}

// ended is the verdict on a clip that xAI says has failed.
func ended(kind string, reply *exchange.Reply, code, said string) *upstream.JobFailure {
	if reviewWords.MatchString(said) {
		return upstream.Moderated(kind, said, false)
	}
	return reply.Ended(kind, code, said)
}
