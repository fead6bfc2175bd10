package upstream

import (
	"bytes"
	"errors"
	"net/http"
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

// Classify returns the failure in an answer by its status, content type, body and header (or nil).
// It is pure, and safe on any bytes. It also finds errors inside good answers: for a 2xx status it
// returns nil if the body is JSON without an error. For a frame of a stream, callers pass 200 and
// the frame's data.
//
// The client never sees the gateway's credential, balance, region or model name at the provider,
// nor a provider's 429 (interface.md, Errors). The provider's message about the request itself is
// passed on. Only names are proof: a status or a wording that a request may cause is Unproven.
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
		f = classifyStatus(status, page(contentType, body))
	case page(contentType, body) || !isJSON(body):
		f = unavailable(HealthFail)
	default:
		return nil
	}
	f.Cause = unreadable(contentType, body)
	return s.complete(f, status, n, header)
}

// classifyError classifies an error by its status and the notice in its body.
func (s Source) classifyError(status int, n notice, header http.Header) *Failure {
	var f *Failure
	if status >= 200 && status < 300 {
		f = s.classifyInner(n)
	} else {
		f = s.classifyNotice(status, n)
	}
	f.Cause = cause(n)
	return s.complete(f, status, n, header)
}

// complete adds to a failure the status, the wait and the scope of a rate limit.
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
			return unproven(HealthModel)
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

// classifyBroken classifies a 5xx. Some vendors use a 500 to reject prompts, or the gateway's
// account. A relay may mean one of its many accounts.
func classifyBroken(status int, r reason) *Failure {
	switch r {
	case reasonTimeout, reasonFilter, reasonOutput:
		return classifyReason(r)
	case reasonAccount, reasonAccountWords:
		return unproven(HealthCredential)
	case reasonModel:
		return unproven(HealthModel)
	}
	return classifyStatus(status, false)
}

// classifyUnaffordable classifies a request whose output limit exceeds the gateway's balance
// (OpenRouter). Another line may serve it, and so may a smaller limit. The message is the
// gateway's, because the provider's reveals the balance.
func classifyUnaffordable(n notice) *Failure {
	_, rest, found := strings.Cut(n.message, "can only afford ")
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	if left, err := strconv.Atoi(digits); !found || err != nil || left == 0 {
		return unproven(HealthCredential)
	}
	return elsewhere(http.StatusBadRequest, notice{
		message: "The model's provider does not take this many output tokens at the moment. Lower max_tokens.",
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
			return unproven(HealthModel)
		case mentions(unquoted, accountWords[:]):
		case mentions(unquoted, contentWords[:]):
			return Fail(fault.UpstreamPromptFilter, nil)
		case mentions(unquoted, featureWords[:]):
			return elsewhere(status, n)
		}
	}
	return unproven(HealthCredential)
}

// classifyMissing classifies a 404 or 410. The missing object may be the model, a host of the model
// with the requested feature, or an item of the request.
func (s Source) classifyMissing(status int, r reason, n notice) *Failure {
	switch {
	case isAboutItem(n):
		return rejection(http.StatusBadRequest, n)
	case r == reasonModel || r == reasonFilter:
		return classifyReason(r)
	case s.namesModel(n):
		return unavailable(HealthModel)
	case mentions(unquote(n.message), featureWords[:]):
		return elsewhere(status, n)
	}
	f := unproven(HealthModel)
	f.Vague = !strings.Contains(strings.ToLower(n.message), "model") && r != reasonMissing
	return f
}

// isAboutItem reports whether the missing object is an item of the request's input (responses
// form).
func isAboutItem(n notice) bool {
	return n.param == "input" || strings.HasPrefix(n.param, "input[") || strings.HasPrefix(n.message, "Item with id ")
}

// classifyInner classifies an error inside a 200 answer or a stream. A number that
// is a status counts as that status; otherwise the names decide.
func (s Source) classifyInner(n notice) *Failure {
	if status, err := strconv.Atoi(n.code); err == nil && status >= 400 && status <= 599 {
		return s.classifyNotice(status, n)
	}
	switch reason := s.reasonOf(n); reason {
	case reasonRequest:
		if n.kind == "request_too_large" {
			return rejection(http.StatusRequestEntityTooLarge, n)
		}
		return rejection(http.StatusBadRequest, n)
	case reasonUnaffordable:
		return classifyUnaffordable(n)
	default:
		return classifyReason(reason)
	}
}

// classifyReason classifies by the reason only.
func classifyReason(r reason) *Failure {
	switch r {
	case reasonAccount:
		return unavailable(HealthCredential)
	case reasonAccountWords:
		return unproven(HealthCredential)
	case reasonModel:
		return unavailable(HealthModel)
	case reasonMissing:
		return unproven(HealthModel)
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
		return unproven(HealthFail)
	default:
		return unavailable(HealthFail)
	}
}

// classifyStatus classifies a status without a notice. If page is true, a proxy answered with a web
// page, not the provider. A 4xx may be about the request, because a proxy also sees the body and
// its size.
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
			return unproven(HealthCredential)
		}
	case http.StatusNotFound, http.StatusGone:
		f := unproven(HealthModel)
		f.Vague = true
		return f
	}
	if status >= 400 && status <= 499 {
		return unproven(HealthFail)
	}
	return unavailable(HealthFail)
}

// unavailable returns upstream_unavailable with the given effect.
func unavailable(h Health) *Failure {
	return &Failure{Code: fault.UpstreamUnavailable, Health: h}
}

// unproven is unavailable for a failure that the request may have caused.
func unproven(h Health) *Failure {
	f := unavailable(h)
	f.Unproven = true
	return f
}

// elsewhere returns a rejection for a feature that this line lacks and other lines may have.
func elsewhere(status int, n notice) *Failure {
	f := rejection(status, n)
	f.Elsewhere = true
	return f
}

// rejection passes on the provider's status, message, type, code and param (interface.md, Error
// object), without the gateway's identity at the provider. A status that a client would take to be
// about its own key, balance or rate becomes 400.
func rejection(status int, n notice) *Failure {
	switch status {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests:
		status = http.StatusBadRequest
	}
	e := &fault.Error{
		Code:      fault.Code(redact(n.code)),
		Template:  redact(n.message),
		Param:     redact(n.param),
		Rejection: &fault.Rejection{Status: status, Type: redact(n.kind), StatusName: n.statusName},
	}
	if n.code == "" {
		e.Code = fault.InvalidRequest
	}
	if n.message == "" {
		e.Template = "The model's provider rejected the request without saying why."
	}
	return &Failure{Code: e.Code, Rejection: e}
}

// page reports whether the answer is a web page.
func page(contentType string, body []byte) bool {
	return mediaType(contentType) == "text/html" || bytes.HasPrefix(bytes.TrimSpace(body), []byte("<"))
}

// isJSON reports whether body looks like a JSON object. The reader of the answer
// parses it.
func isJSON(body []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(body), []byte("{"))
}

// mediaType returns a content type without parameters, in lower case.
func mediaType(contentType string) string {
	contentType, _, _ = strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(contentType))
}

// unreadable returns the content type and the beginning of a body without a notice.
func unreadable(contentType string, body []byte) error {
	if len(body) == 0 {
		return errors.New("empty body")
	}
	return ProviderError(tidy(mediaType(contentType), maxName), string(body[:min(len(body), maxCause)]))
}

// cause returns the names and the message of a notice.
func cause(n notice) error {
	names, message := n.kind, n.message
	if names == "" {
		names = n.code
	} else if n.code != "" && n.code != names {
		names += ": " + n.code
	}
	if message == n.code || message == n.kind {
		message = ""
	}
	return ProviderError(names, message)
}

// retryAfter returns the requested wait: `retry-after-ms`, else `Retry-After` in
// seconds or as a date relative to the answer's `Date`. Without one it returns 0.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bounded(ms * float64(time.Millisecond))
	}
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		return bounded(seconds * float64(time.Second))
	}
	until, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return bounded(float64(until.Sub(now)))
}

// bounded turns any number of nanoseconds into a wait from 0 to maxRetryAfter.
func bounded(ns float64) time.Duration {
	if !(ns > 0) { // also NaN
		return 0
	}
	return time.Duration(min(ns, float64(maxRetryAfter)))
}
