package upstream

import (
	"net/http"
	"strings"

	"tollgate/internal/fault"
)

// Phrases, in lower case, that show the scope of a rejection. No phrase is proof, so a probe decides.
var (
	// formWords lists wordings for a model that works only in another form.
	formWords = [...]string{"only supported in v1/responses", "not a chat model", "not supported in the v1/chat/completions",
		"not accessible via the /chat/completions", "not accessible via the /responses", "not supported with the responses api",
		"use /v1/responses"}
	// modelWords lists wordings for a model that the gateway's account may not use.
	modelWords = [...]string{"verified to use the model", "access to the model", "access to model", "access to this model",
		"bedrock:invokemodel"}
	// tooLargePrefix is the beginning of the message if a single request exceeds a rate limit (OpenAI, Groq).
	tooLargePrefix = "request too large"
	// allModelsWords lists wordings for a rate limit of the whole account.
	allModelsWords = [...]string{"your account", "this account", "your organization", "your organisation", "your team"}
)

// accountLimitVendors lists vendors with one rate limit for all models of an account.
// modelLimitVendor has a limit for each model, but mentions the organization in each
// rejection.
var (
	accountLimitVendors = [...]vendor{
		{"minimax", vendorMiniMax.domains}, {"bfl", "bfl.ai"}, {"ideogram", "ideogram.ai"}, {"recraft", "recraft.ai"},
		{"stability", "stability.ai"}, vendorReplicate, {"", "moonshot.cn moonshot.ai"}, {"", "cohere.com cohere.ai"},
	}
	modelLimitVendor = vendorAnthropic
)

// classifyForm classifies a rejection of the form. It returns nil if the answer is
// not about the form. If the model rejects tools in every form, the client gets the
// rejection.
func classifyForm(status int, n notice) *Failure {
	switch status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusUnprocessableEntity:
	default:
		return nil
	}
	for _, signal := range n.signals {
		if signal == "operationnotsupported" || signal == "unsupported_api_for_model" { // Azure, Copilot
			return unavailableFailure(HealthForm)
		}
	}
	message := unquote(n.message)
	switch {
	case n.param != "" && n.param != "model" && n.param != "reasoning_effort" && n.param != "tools" || !mentions(message, formWords[:]):
		return nil
	case strings.Contains(message, "tools"):
		f := lineRejection(status, n)
		f.Health, f.Unproven, f.Tools = HealthForm, true, true
		return f
	}
	return unprovenFailure(HealthForm)
}

// classifyLimit classifies a 429 response. If the request alone exceeds the rate
// limit, the line does not pause, because a pause would not help.
func classifyLimit(n notice) *Failure {
	f := Fail(fault.UpstreamBusy, nil)
	if strings.HasPrefix(strings.ToLower(n.message), tooLargePrefix) {
		f.Health = HealthNone
	}
	return f
}

// limitsAll reports whether a rate limit applies to the account, and so to all models
// of the line. An overload applies to one model.
func (s Source) limitsAll(n notice) bool {
	for _, signal := range n.signals {
		if strings.Contains(signal, "overloaded") {
			return false
		}
	}
	for _, v := range accountLimitVendors {
		if s.isFrom(v) {
			return true
		}
	}
	message := unquote(n.message)
	return mentions(message, allModelsWords[:]) && !strings.Contains(message, "model") && !s.isFrom(modelLimitVendor)
}
