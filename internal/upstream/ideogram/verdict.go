package ideogram

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// read returns the pictures of a finished task, or a failure if there are none. A picture withheld
// by the review has no address, but the provider bills it.
func read(kind string, doc gjson.Result) ([]jobcall.Result, *upstream.JobFailure) {
	var (
		results  []jobcall.Result
		withheld bool
	)
	for _, item := range doc.Get("data").Array() {
		link, safe := item.Get("url"), item.Get("is_image_safe").Type != gjson.False
		if safe && link.Type == gjson.String && link.Str != "" {
			results = append(results, jobcall.Result{Ref: link.Str})
		}
		withheld = withheld || !safe
	}
	switch {
	case len(results) > 0:
		return results, nil
	case withheld:
		return nil, upstream.ModerationFailure(kind, "the provider's filter withheld the pictures", true)
	}
	return nil, upstream.EmptyResult(kind, "completed without a picture")
}

// submitFailure returns the failure for an error response to a submission.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	doc := gjson.ParseBytes(reply.Body)
	reason, message := doc.Get("reject_reason").String(), doc.Get("error")
	if message.IsObject() { // errors of this format have no reject_reason
		return reply.SubmitFailure(kind)
	}
	switch {
	case reason == "inflight_limit": // also with status 402
		return reply.SubmitFailureAs(kind, "rate_limit_exceeded", message.String())
	case reply.Status == http.StatusPaymentRequired && (reason == "insufficient_funds" || reason == "daily_limit"):
		return reply.SubmitFailureAs(kind, "insufficient_quota", message.String())
	case reply.Status == http.StatusUnprocessableEntity && message.String() != "":
		return reply.SubmitFailureAs(kind, "moderation_blocked", message.String())
	case reply.Status == http.StatusRequestEntityTooLarge && message.String() != "":
		return reply.SubmitFailureAs(kind, "file_too_large", message.String())
	}
	return reply.SubmitFailure(kind)
}

// unsafeReason matches the reasons given by the review.
var unsafeReason = regexp.MustCompile(`(?i)safe|moderat|policy|copyright`)

// taskFailure returns the failure of a task that failed with the provider's reason.
func taskFailure(kind string, reply *exchange.Reply, reason string) *upstream.JobFailure {
	if unsafeReason.MatchString(reason) {
		return upstream.ModerationFailure(kind, reason, false)
	}
	return reply.TaskFailure(kind, "", reason)
}
