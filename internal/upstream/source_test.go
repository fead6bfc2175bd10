package upstream

import (
	"testing"

	"tollgate/internal/fault"
)

// proof holds what a response proves about the line.
type proof struct {
	code      fault.Code
	health    Health
	unproven  bool
	elsewhere bool
}

// TestOneRequestProvesNothing checks that only error names and the provider's id of the model prove
// that a credential or a model is unusable. Words that a request may have caused prove nothing.
func TestOneRequestProvesNothing(t *testing.T) {
	t.Parallel()
	var (
		nobody    = Source{Model: "vendor-model"}
		claude    = Source{Provider: "anthropic", BaseURL: "https://relay.example/v1", Model: "vendor-model"}
		byHost    = Source{Provider: "openai", BaseURL: "https://API.anthropic.com:443/v1"}
		nearly    = Source{Provider: "openai", BaseURL: "https://notanthropic.com/v1"}
		passed    = proof{code: fault.InvalidRequest}
		cred      = proof{code: fault.UpstreamUnavailable, health: HealthCredential}
		credMaybe = proof{code: fault.UpstreamUnavailable, health: HealthCredential, unproven: true}
		model     = proof{code: fault.UpstreamUnavailable, health: HealthModel}
		modelMay  = proof{code: fault.UpstreamUnavailable, health: HealthModel, unproven: true}
		failMaybe = proof{code: fault.UpstreamUnavailable, health: HealthFail, unproven: true}
		fails     = proof{code: fault.UpstreamUnavailable, health: HealthFail}
		other     = proof{code: fault.InvalidRequest, elsewhere: true}
		filtered  = proof{code: fault.UpstreamPromptFilter}
	)
	const balance = "Your credit balance is too low to access the API."
	param := func(message, param string) string {
		return `{"error":{"type":"invalid_request_error","message":"` + message + `","param":"` + param + `"}}`
	}
	for _, tt := range []struct {
		name   string
		from   Source
		status int
		body   string
		want   proof
	}{
		// Wordings.
		{"an echoed field", nobody, 400, openAI("invalid_request_error", "", "Unknown field: credit balance is too low"), passed},
		{"an echoed field, first", nobody, 400, openAI("", "", balance+": Extra inputs are not permitted"), passed},
		{"an echoed field at the vendor", claude, 400, openAI("", "", "Unknown field: "+balance), passed},
		{"an echoed field at the vendor, first", claude, 400, openAI("", "", balance+": Extra inputs are not permitted"), passed},
		{"a parameter at the vendor", claude, 400, param(balance, "x"), passed},
		{"the vendor's wording, by adapter", claude, 400, openAI("invalid_request_error", "", balance), credMaybe},
		{"the vendor's wording, by host", byHost, 400, openAI("invalid_request_error", "", balance), credMaybe},
		{"the vendor's limit", claude, 400, openAI("", "", "You have reached your specified API usage limits."), credMaybe},
		{"a host that ends alike", nearly, 400, openAI("", "", balance), passed},
		{"Moonshot's filter", nobody, 400, openAI("", "", "The request was rejected because it was considered high risk"), filtered},
		{"Moonshot's filter, echoed", nobody, 400, openAI("", "", "Unknown field: considered high risk"), passed},
		{"in a 429", claude, 429, openAI("", "", balance), credMaybe},

		// 401, 402, 403.
		{"401 by name", nobody, 401, openAI("", "invalid_api_key", "x"), cred},
		{"401", nobody, 401, openAI("", "", "x"), credMaybe},
		{"401 empty", nobody, 401, "", credMaybe},
		{"401 page", nobody, 401, htmlPage, failMaybe},
		{"402 by name", nobody, 402, openAI("billing_error", "", "x"), cred},
		{"402 that more tokens would cost", nobody, 402,
			`{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens. You can only afford 5."}}`, credMaybe},
		{"403", nobody, 403, openAI("", "", "Forbidden"), credMaybe},
		{"403 by a broad name", nobody, 403, openAI("permission_error", "", "Your key may not use this feature."), credMaybe},
		{"403 about a file", nobody, 403,
			`{"error":{"code":403,"message":"You do not have permission to access the File x","status":"PERMISSION_DENIED"}}`, credMaybe},
		{"403 that names the model", nobody, 403, openAI("", "model_not_found", "x"), model},
		{"403 about content", nobody, 403, openAI("", "", "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO"), filtered},
		{"403 about our account", nobody, 403, openAI("", "", "Your account violated the content policy."), credMaybe},
		{"403 about size", nobody, 403, openAI("", "", "inputs tokens + max_tokens must be less than context"), other},
		{"403 page", nobody, 403, htmlPage, failMaybe},
		{"400 by a broad name", nobody, 400,
			`{"error":{"code":400,"message":"The File x is not in an ACTIVE state","status":"FAILED_PRECONDITION"}}`, credMaybe},
		{"inside a 200", nobody, 200, `{"error":{"code":403,"message":"x"}}`, credMaybe},

		// 404, 410.
		{"404 by name", nobody, 404, openAI("", "model_not_found", "x"), model},
		{"404", nobody, 404, openAI("", "", "x"), modelMay},
		{"404 empty", nobody, 404, "", modelMay},
		{"404 page", nobody, 404, htmlPage, modelMay},
		{"410", nobody, 410, openAI("", "", "x"), modelMay},
		{"404 that names the id", nobody, 404, openAI("", "", "The model `vendor-model` does not exist"), model},
		{"404 that names the id, Anthropic", nobody, 404, openAI("not_found_error", "", "model: vendor-model"), model},
		{"404 that names the id, Gemini", nobody, 404, openAI("", "", "models/vendor-model is not found for API version v1"), model},
		{"404 about something else", nobody, 404, openAI("not_found_error", "", "container: vendor-model"), modelMay},
		{"404 about a longer name", nobody, 404, openAI("", "", "model 'vendor-model-file' not found"), modelMay},
		{"404 that quotes the id", nobody, 404, openAI("", "", "No file 'the model vendor-model'"), modelMay},
		{"404 about a parameter that is called so", nobody, 404, param("model: vendor-model", "tools.0.name"), modelMay},
		{"404 about tools", nobody, 404, openAI("", "", "No endpoints found that support tool use."), other},
		{"404 about pictures", nobody, 404, openAI("", "", "No endpoints found that support image input"), other},
		{"404 that quotes tools", nobody, 404, openAI("", "", "Nothing called 'tool' here"), modelMay},
		{"404 of the prompt filter", nobody, 404, openAI("", "content_filter", "x"), filtered},
		{"400 of what is not there", nobody, 400, openAI("not_found_error", "", "file"), modelMay},

		// A proxy also sees the body; a 5xx comes from the provider.
		{"400 page", nobody, 400, htmlPage, failMaybe},
		{"413 page", nobody, 413, htmlPage, failMaybe},
		{"409", nobody, 409, openAI("", "", "x"), failMaybe},
		{"408", nobody, 408, openAI("", "", "x"), proof{code: fault.UpstreamTimeout, health: HealthFail, unproven: true}},
		{"500", nobody, 500, openAI("", "", "x"), fails},
		{"307", nobody, 307, "", fails},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			contentType := "application/json"
			if tt.body == htmlPage {
				contentType = "text/html"
			}
			f := tt.from.Classify(tt.status, contentType, []byte(tt.body), nil)
			if got := (proof{f.Code, f.Health, f.Unproven, f.LineSpecific}); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			if rejects := tt.want == passed || tt.want == other; (f.Rejection != nil) != rejects || f.Final() != (tt.want == passed) {
				t.Errorf("passed on %v, final %t", f.Rejection, f.Final())
			}
		})
	}
}

// TestWhatAPromptCanDoIsUnproven checks that empty answers and error sentences prove nothing about
// a model, because a prompt can cause them.
func TestWhatAPromptCanDoIsUnproven(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]bool{
		fault.EmptyCompletion: true, fault.UpstreamError: true,
		fault.UpstreamConnectionError: false, fault.UpstreamUnavailable: false, fault.UpstreamTimeout: false, fault.UpstreamBusy: false,
	} {
		if got := Fail(code, nil).Unproven; got != want {
			t.Errorf("%s: unproven %t", code, got)
		}
	}
}
