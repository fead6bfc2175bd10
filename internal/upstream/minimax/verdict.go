package minimax

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// Names for the provider's numeric codes, which have the same meaning in all of its interfaces.
const (
	codeRate      = "rate_limit_exceeded"
	codeAccount   = "insufficient_quota"
	codeInput     = "moderation_blocked"
	codeParameter = "invalidparameter"
	codeTimeout   = "timeout_error"
	codeServer    = "internal_server_error"
)

// codeOf returns the name of a numeric code with the same meaning at every provider, or "" if the
// number means no more than its message.
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

// codeOutput is the numeric code for a result withheld by the review.
const codeOutput = "1027"

// sensitive matches the provider's messages about a prompt rejected by its review, for responses
// without a numeric code.
var sensitive = regexp.MustCompile(`(?i)\bsensitive\b|moderation`)

// rejection returns the failure of a submission, or nil after a good response.
func rejection(kind string, reply *exchange.Reply) *upstream.JobFailure {
	if !gjson.ValidBytes(reply.Body) {
		return lost(kind, reply)
	}
	doc := gjson.ParseBytes(reply.Body)
	number, message := doc.Get("base_resp.status_code"), doc.Get("base_resp.status_msg").String()
	if e := doc.Get("error"); e.IsObject() { // second interface: the code may be in either
		for _, at := range []string{"code", "type"} {
			if n := e.Get(at).String(); codeOf(n) != "" || n == codeOutput {
				number, message = e.Get(at), e.Get("message").String()
			}
		}
	}
	switch n := number.String(); {
	case reply.Good() && (n == "" || n == "0") && !doc.Get("error").IsObject():
		return nil
	case n == codeOutput:
		return reply.Redact(upstream.Moderated(kind, message, true))
	case codeOf(n) != "":
		return reply.RefusedAs(kind, codeOf(n), message)
	}
	if words := doc.Get("error.message").String(); reply.Status == http.StatusBadRequest && sensitive.MatchString(words) {
		return reply.RefusedAs(kind, codeInput, words)
	}
	return reply.Refused(kind)
}

// lost returns the failure of an unreadable response. If the status is good, a clip's task may have
// been accepted.
func lost(kind string, reply *exchange.Reply) *upstream.JobFailure {
	f := reply.Refused(kind)
	f.Lost = reply.Good() && kind == upstream.KindVideo
	return f
}

// ended is the verdict on the error object of a task.
func ended(kind string, reply *exchange.Reply, e gjson.Result) *upstream.JobFailure {
	number, message := e.Get("code").String(), e.Get("message").String()
	if number == codeOutput {
		return upstream.Moderated(kind, message, true)
	}
	code := codeOf(number)
	if code == "" && number != "" {
		message = number + ": " + message
	}
	return reply.Ended(kind, code, message)
}
