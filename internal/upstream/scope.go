package upstream

import (
	"net/http"
	"strings"

	"tollgate/internal/fault"
)

// Words, in lower case, that tell how much of a line a refusal is about. None of
// them proves anything: a probe does.
var (
	// formWords say that the model is there, in another form.
	formWords = [...]string{"only supported in v1/responses", "not a chat model", "not supported in the v1/chat/completions",
		"not accessible via the /chat/completions", "not accessible via the /responses", "not supported with the responses api",
		"use /v1/responses"}
	// modelWords say that the model is not open to us.
	modelWords = [...]string{"verified to use the model", "access to the model", "access to model", "access to this model",
		"bedrock:invokemodel"}
	// tooLarge begins a rate limit that the request exceeds alone (OpenAI, Groq).
	tooLarge = "request too large"
	// allModelsWords say that a rate limit is the account's.
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

// classifyForm judges a refusal of the form in which a model was asked for; nil:
// it is none. That one takes no tools in a form is for the request to hear where
// no other form is left.
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

// classifyLimit judges a 429 that is one of the rate. One that the request exceeds
// alone is over for others: to wait would not help it.
func classifyLimit(n notice) *Failure {
	f := Fail(fault.UpstreamBusy, nil)
	if strings.HasPrefix(strings.ToLower(n.message), tooLarge) {
		f.Health = HealthNone
	}
	return f
}

// limitsAll tells whether a rate limit is that of the account, and so of all
// models of the line. An overload is the model's.
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
