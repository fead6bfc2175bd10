package minimax

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Names for the provider's numeric codes. A code means the same in both versions of the interface.
const (
	codeRate      = "rate_limit_exceeded"
	codeAccount   = "insufficient_quota"
	codeInput     = "moderation_blocked"
	codeParameter = "invalidparameter"
	codeTimeout   = "timeout_error"
	codeServer    = "internal_server_error"
)

// codeOf returns the name of a numeric code, with the same meaning as at other providers. It
// returns "" for the other codes, whose message is as informative as the code.
func codeOf(number string) string {
	switch number {
	case "1002", "1039":
		return codeRate
	case "1004", "1008", "2038", "2049":
		return codeAccount
	case "1026":
		return codeInput
	case "2013":
		return codeParameter
	case "1001":
		return codeTimeout
	case "1000", "1013":
		return codeServer
	}
	return ""
}

// codeOutput is the numeric code for a result withheld by the content review.
const codeOutput = "1027"

// moderationWords matches messages about a prompt rejected by the content review, for responses without a
// numeric code.
var moderationWords = regexp.MustCompile(`(?i)\bsensitive\b|moderation`)

// submitFailure returns the failure of a submission, or nil after a good response.
func submitFailure(kind string, reply *exchange.Reply) *upstream.JobFailure {
	if !gjson.ValidBytes(reply.Body) {
		return unreadableReply(kind, reply)
	}
	doc := gjson.ParseBytes(reply.Body)
	number, message := doc.Get("base_resp.status_code"), doc.Get("base_resp.status_msg").String()
	if e := doc.Get("error"); e.IsObject() { // version 2: the numeric code is in either member
		for _, member := range []string{"code", "type"} {
			if n := e.Get(member).String(); codeOf(n) != "" || n == codeOutput {
				number, message = e.Get(member), e.Get("message").String()
			}
		}
	}
	switch n := number.String(); {
	case reply.OK() && (n == "" || n == "0") && !doc.Get("error").IsObject():
		return nil
	case n == codeOutput:
		return reply.Redact(upstream.ModerationFailure(kind, message, true))
	case codeOf(n) != "":
		return reply.SubmitFailureAs(kind, codeOf(n), message)
	}
	if words := doc.Get("error.message").String(); reply.Status == http.StatusBadRequest && moderationWords.MatchString(words) {
		return reply.SubmitFailureAs(kind, codeInput, words)
	}
	return reply.SubmitFailure(kind)
}

// unreadableReply returns the failure of an unreadable response. If the status is good, a clip's task
// may have been accepted.
func unreadableReply(kind string, reply *exchange.Reply) *upstream.JobFailure {
	f := reply.SubmitFailure(kind)
	f.Lost = reply.OK() && kind == upstream.KindVideo
	return f
}

// taskFailure returns the failure in the error object of a task.
func taskFailure(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	number, message := e.Get("code").String(), e.Get("message").String()
	if number == codeOutput {
		return upstream.ModerationFailure(kind, message, true)
	}
	code := codeOf(number)
	if code == "" && number != "" {
		message = number + ": " + message
	}
	return reply.TaskFailure(kind, code, message)
}
