package minimax

import (
	"net/http"
	"regexp"

	"github.com/tidwall/gjson"

	"tollgate/internal/upstream"
	"tollgate/internal/upstream/exchange"
)

// The provider's numbers, which say the same in all of its interfaces.
const (
	codeRate      = "rate_limit_exceeded"
	codeAccount   = "insufficient_quota"
	codeInput     = "moderation_blocked"
	codeParameter = "invalidparameter"
	codeTimeout   = "timeout_error"
	codeServer    = "internal_server_error"
)

// codeOf is a number of the provider in a name that judges the same everywhere;
// empty: one that says no more than its words.
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

// codeOutput is the number of a review that withheld a result.
const codeOutput = "1027"

// sensitive matches what the provider says of a prompt that its review refuses,
// where it gives no number.
var sensitive = regexp.MustCompile(`(?i)\bsensitive\b|moderation`)

// refused is the verdict on an answer to a submission; nil: it is a good one.
func refused(kind string, reply *exchange.Reply) *upstream.JobFailure {
	if !gjson.ValidBytes(reply.Body) {
		return lost(kind, reply)
	}
	said := gjson.ParseBytes(reply.Body)
	number, message := said.Get("base_resp.status_code"), said.Get("base_resp.status_msg").String()
	if e := said.Get("error"); e.IsObject() { // the second interface: the number may stand in the type or the code
		for _, at := range []string{"code", "type"} {
			if n := e.Get(at).String(); codeOf(n) != "" || n == codeOutput {
				number, message = e.Get(at), e.Get("message").String()
			}
		}
	}
	switch n := number.String(); {
	case reply.Good() && (n == "" || n == "0") && !said.Get("error").IsObject():
		return nil
	case n == codeOutput:
		return reply.Redact(upstream.Moderated(kind, message, true))
	case codeOf(n) != "":
		return reply.RefusedAs(kind, codeOf(n), message)
	}
	if words := said.Get("error.message").String(); reply.Status == http.StatusBadRequest && sensitive.MatchString(words) {
		return reply.RefusedAs(kind, codeInput, words)
	}
	return reply.Refused(kind)
}

// lost is the verdict on an answer that cannot be read: with a good status the
// task may well have been accepted.
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
