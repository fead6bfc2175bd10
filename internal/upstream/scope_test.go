package upstream

import (
	"testing"

	"tollgate/internal/fault"
)

// scope is the part of a line that a failure takes out of use.
type scope struct {
	code      fault.Code
	health    Health
	unproven  bool
	vague     bool
	tools     bool
	allModels bool
	elsewhere bool
}

func scopeOf(f *Failure) scope {
	return scope{f.Code, f.Health, f.Unproven, f.Vague, f.Tools, f.AllModels, f.LineSpecific}
}

// TestScope checks that a rejection affects only its scope: a form, a model, all models of an
// account, or just the request.
func TestScope(t *testing.T) {
	t.Parallel()
	const (
		onlyResponses = "This model is only supported in v1/responses and not in v1/chat/completions."
		noChat        = "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean …?"
		toolsEffort   = "Function tools with reasoning_effort are not supported for vendor-model in /v1/chat/completions. "
		tpm           = "Request too large for model `vendor-model` in organization `org_1` on tokens per minute (TPM): Limit 6000"
	)
	param := func(message, param, code string) string {
		return `{"error":{"type":"invalid_request_error","message":"` + message + `","param":"` + param + `","code":` + code + `}}`
	}
	var (
		anybody  = Source{Provider: "openai", BaseURL: "https://relay.example/v1", Model: "vendor-model"}
		moonshot = Source{Provider: "openai", BaseURL: "https://api.moonshot.ai/v1"}
		minimax  = Source{Provider: "openai", BaseURL: "https://api.minimaxi.com/v1"}
		cohere   = Source{Provider: "openai", BaseURL: "https://api.cohere.com/compatibility/v1"}
		claude   = Source{Provider: "anthropic", BaseURL: "https://relay.example"}

		form     = scope{code: fault.UpstreamUnavailable, health: HealthForm}
		formMay  = scope{code: fault.UpstreamUnavailable, health: HealthForm, unproven: true}
		tools    = scope{code: fault.InvalidRequest, health: HealthForm, unproven: true, tools: true, elsewhere: true}
		model    = scope{code: fault.UpstreamUnavailable, health: HealthModel}
		modelMay = scope{code: fault.UpstreamUnavailable, health: HealthModel, unproven: true}
		either   = scope{code: fault.UpstreamUnavailable, health: HealthModel, unproven: true, vague: true}
		one      = scope{code: fault.UpstreamBusy, health: HealthCool}
		all      = scope{code: fault.UpstreamBusy, health: HealthCool, allModels: true}
		credMay  = scope{code: fault.UpstreamUnavailable, health: HealthCredential, unproven: true}
		request  = scope{code: fault.InvalidRequest}
		elsewise = scope{code: fault.InvalidRequest, elsewhere: true}
	)
	for _, tt := range []struct {
		name   string
		from   Source
		status int
		body   string
		want   scope
	}{
		// A form that the model, or the host, lacks.
		{"only responses", anybody, 404, param(onlyResponses, "model", "null"), formMay},
		{"only responses, as a 400", anybody, 400, param(onlyResponses, "model", "null"), formMay},
		{"no chat model", anybody, 404, param(noChat, "model", "null"), formMay},
		{"no responses", anybody, 404,
			param("The requested model 'vendor-model' is not supported with the Responses API.", "model", `"model_not_found"`), formMay},
		{"Azure", anybody, 400,
			param("The chatCompletion operation does not work with the specified model, x.", "", `"OperationNotSupported"`), form},
		{"Copilot", anybody, 400,
			param("model x is not accessible via the /chat/completions endpoint", "", `"unsupported_api_for_model"`), form},
		{"quoted by a client", anybody, 400, param("Invalid value: 'only supported in v1/responses'", "tool_choice", "null"), request},
		{"no endpoint, a page", anybody, 404, htmlPage, either},
		{"no endpoint", anybody, 404, `{"detail":"Not Found"}`, either},
		{"no endpoint, in text", anybody, 404, "404 page not found", either},

		// Tools that a form does not accept.
		{"tools", anybody, 400, param(toolsEffort+"Please use /v1/responses instead.", "reasoning_effort", "null"), tools},
		{"tools, newer", anybody, 400,
			param(toolsEffort+"To use function tools, use /v1/responses or set reasoning_effort to 'none'.", "reasoning_effort", "null"), tools},

		// A model that is missing or not available to the gateway.
		{"no such model", anybody, 404, param("x", "model", `"model_not_found"`), model},
		{"no such model of a tool", anybody, 404, param("x", "tools[0].model", `"model_not_found"`), modelMay},
		{"not verified", anybody, 403,
			param("Your organization must be verified to use the model `o9`. Please go to settings.", "", "null"), modelMay},
		{"not verified, 404", anybody, 404, param("Your organization must be verified to use the model `o9`.", "", "null"), modelMay},
		{"Bedrock", anybody, 403, `{"message":"You don't have access to the model with the specified model ID."}`, modelMay},
		{"Bedrock, by its policy", anybody, 403,
			`{"message":"User: arn:aws:iam::1:user/x is not authorized to perform: bedrock:InvokeModel on resource: y"}`, modelMay},
		{"Model.AccessDenied", anybody, 403, `{"code":"Model.AccessDenied","message":"x"}`, model},
		{"Azure without the deployment", anybody, 404, param("x", "", `"DeploymentNotFound"`), model},
		{"a model in words", anybody, 404, `{"error":"model 'x' not found, try pulling it first"}`, modelMay},

		// Rate limits of a model or of an account.
		{"OpenAI's rate", anybody, 429,
			param("Rate limit reached for m in organization org-1 on tokens per min (TPM)", "", `"rate_limit_exceeded"`), one},
		{"Anthropic's rate", claude, 429, `{"type":"error","error":{"type":"rate_limit_error",` +
			`"message":"This request would exceed your organization's rate limit of 40,000 input tokens per minute."}}`, one},
		{"an account's rate", anybody, 429, param("Your account has reached its rate limit", "", "null"), all},
		{"a team's rate", anybody, 429, param("Rate limit of your team exceeded", "", "null"), all},
		{"Moonshot's rate", moonshot, 429, param("x", "", "null"), all},
		{"MiniMax's rate", minimax, 429, param("x", "", "null"), all},
		{"MiniMax's rate, inside", minimax, 200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`, all},
		{"Cohere's rate", cohere, 429, `{"id":"x","message":"x"}`, all},
		{"Moonshot, overloaded", moonshot, 429, param("x", "", `"engine_overloaded_error"`), one},
		{"larger than the rate", anybody, 429, openAI("tokens", "rate_limit_exceeded", tpm), scope{code: fault.UpstreamBusy}},
		{"larger than the rate, Groq", anybody, 413, openAI("tokens", "rate_limit_exceeded", tpm),
			scope{code: fault.RateLimitExceeded}},

		// Failures of the request itself.
		{"images", anybody, 404, param("No endpoints found that support image input", "", "null"), elsewise},
		{"tool use", anybody, 404, param("No endpoints found that support tool use", "", "null"), elsewise},
		{"xAI's usage guidelines", anybody, 403,
			`{"code":"The caller does not have permission to execute the specified operation",` +
				`"error":"Content violates usage guidelines. Team: 1, Failed check: SAFETY_CHECK_TYPE_CSAM"}`,
			scope{code: fault.UpstreamPromptFilter}},
		{"our account", anybody, 403, param("Your account has no permission", "", "null"), credMay},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := scopeOf(tt.from.Classify(tt.status, "application/json", []byte(tt.body), nil)); got != tt.want {
				t.Errorf("%+v\nwant %+v", got, tt.want)
			}
		})
	}
}
