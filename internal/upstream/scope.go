package upstream

import (
	"net/http"
	"strings"

	"tollgate/internal/fault"
)

// Words, in lower case, for the scope of a refusal. None of them is proof: a probe
// decides.
var (
	// formWords mean: the model works in another form.
	formWords = [...]string{"only supported in v1/responses", "not a chat model", "not supported in the v1/chat/completions",
		"not accessible via the /chat/completions", "not accessible via the /responses", "not supported with the responses api",
		"use /v1/responses"}
	// modelWords mean: our account may not use the model.
	modelWords = [...]string{"verified to use the model", "access to the model", "access to model", "access to this model",
		"bedrock:invokemodel"}
	// tooLarge begins the message if the request alone exceeds a rate limit (OpenAI, Groq).
	tooLarge = "request too large"
	// allModelsWords mean: the rate limit is the account's.
	allModelsWords = [...]string{"your account", "this account", "your organization", "your organisation", "your team"}
)

// limitedByAccount lists the vendors with one rate limit for all models of an
// account. limitedByModel has a limit for each model, and names the organization
// in each refusal.
var (
	limitedByAccount = [...]vendor{
		{"minimax", vendorMiniMax.domains}, {"bfl", "bfl.ai"}, {"ideogram", "ideogram.ai"}, {"recraft", "recraft.ai"},
		{"stability", "stability.ai"}, vendorReplicate, {"", "moonshot.cn moonshot.ai"}, {"", "cohere.com cohere.ai"},
	}
	limitedByModel = vendorAnthropic
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
			return unavailable(HealthForm)
		}
	}
	said := unquote(n.message)
	switch {
	case n.param != "" && n.param != "model" && n.param != "reasoning_effort" && n.param != "tools" || !mentions(said, formWords[:]):
		return nil
	case strings.Contains(said, "tools"):
		f := elsewhere(status, n)
		f.Health, f.Unproven, f.Tools = HealthForm, true, true
		return f
	}
	return unproven(HealthForm)
}

// classifyLimit classifies a 429 for a rate. If the request alone exceeds the limit,
// the line does not pause, since a pause would not help.
func classifyLimit(n notice) *Failure {
	f := Fail(fault.UpstreamBusy, nil)
	if strings.HasPrefix(strings.ToLower(n.message), tooLarge) {
		f.Health = HealthNone
	}
	return f
}

// limitsAll reports whether a rate limit is the account's, and so applies to all
// models of the line. An overload applies to one model.
func (s Source) limitsAll(n notice) bool {
	for _, signal := range n.signals {
		if strings.Contains(signal, "overloaded") {
			return false
		}
	}
	for _, v := range limitedByAccount {
		if s.is(v) {
			return true
		}
	}
	said := unquote(n.message)
	return mentions(said, allModelsWords[:]) && !strings.Contains(said, "model") && !s.is(limitedByModel)
}
