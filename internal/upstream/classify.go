package upstream

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"tollgate/internal/fault"
)

// maxRetryAfter is the longest wait accepted from a provider.
const maxRetryAfter = time.Hour

// Classify is Source.Classify for an unknown provider.
func Classify(status int, contentType string, body []byte, header http.Header) *Failure {
	return Source{}.Classify(status, contentType, body, header)
}

// Classify returns the failure of an answer, by its status, content type, body and header. header may
// be nil. Classify is a pure function and accepts any bytes. For a 2xx status it returns nil if the
// body is JSON without an error. For a stream event, callers pass status 200 and the event's data.
//
// The client never sees the gateway's credential, balance, region or model name at the provider,
// nor a provider's 429 (interface.md, Errors). The client gets the provider's message about the
// request itself. A failure is Unproven if a request may cause the status or the wording; only an
// error name is proof.
func (s Source) Classify(status int, contentType string, body []byte, header http.Header) *Failure {
	n, ok := readNotice(body, status < 200 || status >= 300)
	if kind, _, _ := strings.Cut(header.Get("X-Amzn-Errortype"), ":"); ok && kind != "" {
		n.signals = append(n.signals, strings.ToLower(tidy(kind, maxName)))
	}
	if ok {
		return s.classifyError(status, n, header)
	}
	var f *Failure
	switch {
	case status < 200 || status >= 300:
		f = classifyStatus(status, isWebPage(contentType, body))
	case isWebPage(contentType, body) || !isJSON(body):
		f = unavailableFailure(HealthFail)
	default:
		return nil
	}
	f.Cause = unreadableBody(contentType, body)
	return s.complete(f, status, n, header)
}

// classifyError classifies an error by its status and the notice in its body.
func (s Source) classifyError(status int, n notice, header http.Header) *Failure {
	var f *Failure
	switch {
	case status != http.StatusTooManyRequests && isTooLong(n):
		f = rejection(tooLongStatus(status), n)
	case status >= 200 && status < 300:
		f = s.classifyInner(n)
	default:
		f = s.classifyNotice(status, n)
	}
	f.Cause = noticeCause(n)
	return s.complete(f, status, n, header)
}

// complete sets the failure's status, wait and scope of a rate limit.
func (s Source) complete(f *Failure, status int, n notice, header http.Header) *Failure {
	f.Status = status
	f.AllModels = f.Health == HealthCool && s.limitsAll(n)
	if f.RetryAfter = retryAfter(header); f.RetryAfter == 0 {
		f.RetryAfter = n.wait
	}
	return f
}

// classifyNotice classifies an error status with a notice.
func (s Source) classifyNotice(status int, n notice) *Failure {
	if f := classifyForm(status, n); f != nil {
		return f
	}
	reason := s.reasonOf(n)
	switch status {
	case http.StatusTooManyRequests:
		if reason == reasonAccount || reason == reasonAccountWords {
			return classifyReason(reason)
		}
		return classifyLimit(n)
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		return classifyForbidden(status, reason, n)
	case http.StatusNotFound, http.StatusGone:
		return s.classifyMissing(status, reason, n)
	case http.StatusRequestEntityTooLarge: // also if the request alone exceeds a rate limit (Groq)
		if reason == reasonBusy {
			return rejection(status, n)
		}
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusFailedDependency, 498, 499:
		return classifyStatus(status, false)
	case http.StatusPreconditionFailed: // the gateway sends no conditional requests
		if reason == reasonNone && s.isAt(vendorFireworks) {
			return unprovenFailure(HealthModel)
		}
	case http.StatusServiceUnavailable:
		if reason == reasonBusy || reason == reasonCapacity || strings.Contains(strings.ToLower(n.message), "overloaded") {
			return Fail(fault.UpstreamBusy, nil)
		}
	}
	if status >= 500 {
		return classifyBroken(status, reason)
	}
	if status < 400 {
		return classifyStatus(status, false)
	}
	switch reason {
	case reasonNone, reasonServer, reasonRequest:
		return rejection(status, n)
	case reasonUnaffordable:
		return classifyUnaffordable(n)
	}
	return classifyReason(reason)
}

// classifyBroken classifies a 5xx. Some vendors reject prompts or the gateway's account with a 500.
// A relay's 500 may be about only one of its many accounts.
func classifyBroken(status int, r reason) *Failure {
	switch r {
	case reasonTimeout, reasonFilter, reasonOutput:
		return classifyReason(r)
	case reasonAccount, reasonAccountWords:
		return unprovenFailure(HealthCredential)
	case reasonModel:
		return unprovenFailure(HealthModel)
	}
	return classifyStatus(status, false)
}

// classifyUnaffordable classifies the rejection of an output limit that exceeds the gateway's balance
// (OpenRouter). Another line, or a smaller limit, may work. The message is the gateway's own, because
// the provider's message reveals the balance.
func classifyUnaffordable(n notice) *Failure {
	_, rest, found := strings.Cut(n.message, "can only afford ")
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if tokens, err := strconv.Atoi(digits); !found || err != nil || tokens == 0 {
		return unprovenFailure(HealthCredential)
	}
	return lineRejection(http.StatusBadRequest, notice{
		message: "The model's provider does not take this many output tokens at the moment. Ask for fewer.",
		param:   "max_tokens",
	})
}

// classifyForbidden classifies a 401, 402 or 403. Some vendors reject prompts and
// features with a 403.
func classifyForbidden(status int, r reason, n notice) *Failure {
	switch r {
	case reasonAccount, reasonModel, reasonMissing, reasonFilter, reasonOutput, reasonBusy:
		return classifyReason(r)
	case reasonUnaffordable:
		return classifyUnaffordable(n)
	}
	if status == http.StatusForbidden && r != reasonAccountWords {
		switch unquoted := unquote(n.message); {
		case strings.HasPrefix(unquoted, "content violates"): // xAI; the ids of our team and key follow
			return Fail(fault.UpstreamPromptFilter, nil)
		case mentions(unquoted, modelWords[:]):
			return unprovenFailure(HealthModel)
		case mentions(unquoted, accountWords[:]):
		case mentions(unquoted, contentWords[:]):
			return Fail(fault.UpstreamPromptFilter, nil)
		case mentions(unquoted, featureWords[:]):
			return lineRejection(status, n)
		}
	}
	return unprovenFailure(HealthCredential)
}

// classifyMissing classifies a 404 or 410. The model, an item of the request, or a host with the model
// and the requested feature may be missing.
func (s Source) classifyMissing(status int, r reason, n notice) *Failure {
	switch {
	case isAboutItem(n):
		return rejection(http.StatusBadRequest, n)
	case slices.Contains(n.signals, "voice_not_found"): // ElevenLabs
		n.param = "voice"
		return lineRejection(http.StatusBadRequest, n)
	case r == reasonModel || r == reasonFilter:
		return classifyReason(r)
	case s.namesModel(n):
		return unavailableFailure(HealthModel)
	case mentions(unquote(n.message), featureWords[:]):
		return lineRejection(status, n)
	}
	f := unprovenFailure(HealthModel)
	f.Vague = !strings.Contains(strings.ToLower(n.message), "model") && r != reasonMissing
	return f
}

// isAboutItem reports whether the missing object is an item of the request's input (responses
// form).
func isAboutItem(n notice) bool {
	return n.param == "input" || strings.HasPrefix(n.param, "input[") || strings.HasPrefix(n.message, "Item with id ")
}

// classifyInner classifies an error inside a 200 answer or a stream. A code from 400 to
// 599 counts as an HTTP status; otherwise the error names decide.
func (s Source) classifyInner(n notice) *Failure {
	if status, err := strconv.Atoi(n.code); err == nil && status >= 400 && status <= 599 {
		return s.classifyNotice(status, n)
	}
	switch reason := s.reasonOf(n); reason {
	case reasonRequest:
		if n.errorType == "request_too_large" {
			return rejection(http.StatusRequestEntityTooLarge, n)
		}
		return rejection(http.StatusBadRequest, n)
	case reasonUnaffordable:
		return classifyUnaffordable(n)
	default:
		return classifyReason(reason)
	}
}

// classifyReason returns the failure for a reason.
func classifyReason(r reason) *Failure {
	switch r {
	case reasonAccount:
		return unavailableFailure(HealthCredential)
	case reasonAccountWords:
		return unprovenFailure(HealthCredential)
	case reasonModel:
		return unavailableFailure(HealthModel)
	case reasonMissing:
		return unprovenFailure(HealthModel)
	case reasonFilter:
		return Fail(fault.UpstreamPromptFilter, nil)
	case reasonOutput:
		return Fail(fault.ContentFilter, nil)
	case reasonBusy:
		return Fail(fault.UpstreamBusy, nil)
	case reasonCapacity: // a request may contain the words, so no line is cooled
		return &Failure{Code: fault.UpstreamBusy, Health: HealthFail, Unproven: true}
	case reasonTimeout:
		return Fail(fault.UpstreamTimeout, nil)
	case reasonDown:
		return unprovenFailure(HealthFail)
	default:
		return unavailableFailure(HealthFail)
	}
}

// classifyStatus classifies a status without a notice. If page is true, a proxy answered with a web
// page instead of the provider. Any 4xx may be about the request, because a proxy also sees the body
// and its size.
func classifyStatus(status int, page bool) *Failure {
	switch status {
	case http.StatusRequestTimeout:
		f := Fail(fault.UpstreamTimeout, nil)
		f.Unproven = true
		return f
	case http.StatusGatewayTimeout, 522, 524:
		return Fail(fault.UpstreamTimeout, nil)
	case http.StatusTooManyRequests, 498, 529:
		return Fail(fault.UpstreamBusy, nil)
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if !page {
			return unprovenFailure(HealthCredential)
		}
	case http.StatusNotFound, http.StatusGone:
		f := unprovenFailure(HealthModel)
		f.Vague = true
		return f
	}
	if status >= 400 && status <= 499 {
		return unprovenFailure(HealthFail)
	}
	return unavailableFailure(HealthFail)
}

// unavailableFailure returns a failure with the code upstream_unavailable and the effect h on the line.
func unavailableFailure(h Health) *Failure {
	return &Failure{Code: fault.UpstreamUnavailable, Health: h}
}

// unprovenFailure is unavailableFailure for a failure that the request may have caused.
func unprovenFailure(h Health) *Failure {
	f := unavailableFailure(h)
	f.Unproven = true
	return f
}

// lineRejection returns a rejection for a feature that this line lacks and other lines may have.
func lineRejection(status int, n notice) *Failure {
	f := rejection(status, n)
	f.LineSpecific = true
	return f
}

// rejection returns a failure that passes on the provider's status, message, type, code and param
// (interface.md, Error object), without the gateway's identity at the provider. A prompt that is too
// long has the code ContextLengthExceeded at every provider. A status about the
// gateway's key, balance or rate becomes 400, because the client
// would think of its own key, balance or rate.
func rejection(status int, n notice) *Failure {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests:
		status = http.StatusBadRequest
	}
	e := &fault.Error{
		Code:      fault.Code(redact(n.code)),
		Template:  redact(n.message),
		Param:     redact(n.param),
		Rejection: &fault.Rejection{Status: status, Type: redact(n.errorType), StatusName: n.statusName},
	}
	switch {
	case isTooLong(n):
		e.Code = ContextLengthExceeded
	case n.code == "":
		e.Code = fault.InvalidRequest
	}
	if n.message == "" {
		e.Template = "The model's provider rejected the request without saying why."
	}
	return &Failure{Code: e.Code, Rejection: e}
}

// isWebPage reports whether the answer is a web page.
func isWebPage(contentType string, body []byte) bool {
	return mediaType(contentType) == "text/html" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// isJSON reports whether body begins like a JSON object. The reader of the answer parses
// the body.
func isJSON(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
}

// mediaType returns a content type without parameters, in lower case.
func mediaType(contentType string) string {
	contentType, _, _ = strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(contentType))
}

// unreadableBody returns a cause with the content type and the beginning of a body without a
// notice.
func unreadableBody(contentType string, body []byte) error {
	if len(body) == 0 {
		return errors.New("empty body")
	}
	return ProviderError(tidy(mediaType(contentType), maxName), string(body[:min(len(body), maxCause)]))
}

// noticeCause returns a cause with the names and the message of a notice.
func noticeCause(n notice) error {
	names, message := n.errorType, n.message
	if names == "" {
		names = n.code
	} else if n.code != "" && n.code != names {
		names += ": " + n.code
	}
	if message == n.code || message == n.errorType {
		message = ""
	}
	return ProviderError(names, message)
}

// retryAfter returns the wait in `retry-after-ms`, otherwise the wait in `Retry-After`, in
// seconds or as a date relative to the answer's `Date`. It returns 0 if there is neither.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return boundWait(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return boundWait(seconds * float64(time.Second))
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return boundWait(float64(until.Sub(now)))
}

// boundWait returns ns nanoseconds as a wait from 0 to maxRetryAfter.
func boundWait(ns float64) time.Duration {
	if !(ns > 0) { // also NaN
		return 0
	}
	return time.Duration(min(ns, float64(maxRetryAfter)))
}
