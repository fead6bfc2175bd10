package ideogram

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
	"tollgate/internal/upstream/jobcall"
)

// read reads a task that is done: its pictures, or why there are none. A picture
// that the review withheld has no address, and is billed.
func read(kind string, said gjson.Result) ([]jobcall.Result, *upstream.JobFailure) {
	var (
		results  []jobcall.Result
		withheld bool
	)
	for _, item := range said.Get("data").Array() {
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
		return nil, upstream.Moderated(kind, "the provider's filter withheld the pictures", true)
	}
	return nil, upstream.Nothing(kind, "completed without a picture")
}

// refused is the verdict on an answer that is not a good one.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	said := gjson.ParseBytes(reply.Body)
	reason, message := said.Get("reject_reason").String(), said.Get("error")
	if message.IsObject() { // of nobody that has a reason
		return reply.Refused(kind)
	}
	switch {
	case reason == "inflight_limit": // also with a 402
		return reply.RefusedAs(kind, "rate_limit_exceeded", message.String())
	case reply.Status == http.StatusPaymentRequired && (reason == "insufficient_funds" || reason == "daily_limit"):
		return reply.RefusedAs(kind, "insufficient_quota", message.String())
	case reply.Status == http.StatusUnprocessableEntity && message.String() != "":
		return reply.RefusedAs(kind, "moderation_blocked", message.String())
	case reply.Status == http.StatusRequestEntityTooLarge && message.String() != "":
		return reply.RefusedAs(kind, "file_too_large", message.String())
	}
	return reply.Refused(kind)
}

// unsafe matches a reason that is the review's.
var unsafe = regexp.MustCompile(`(?i)safe|moderat|policy|copyright`)

// ended is the verdict on a task that failed, by the provider's words.
func ended(kind string, reply *exchange.Reply, reason string) *upstream.JobFailure {
	if unsafe.MatchString(reason) {
		return upstream.Moderated(kind, reason, false)
	}
	return reply.Ended(kind, "", reason)
}
