package upstream

import (
	"net/http"
	"testing"

	"tollgate/internal/fault"
)

// TestCapacityInWords checks that an overload reported as a client error moves the request to the
// next line, both in an HTTP response and inside a stream.
func TestCapacityInWords(t *testing.T) {
	t.Parallel()
	from := Source{Provider: "openai", BaseURL: "https://relay.example/v1", Model: "gpt-6-sol"}
	for _, message := range []string{
		"Selected model is at capacity. Please try a different model.",                              // OpenAI
		"The model `gpt-6-sol` is currently at capacity. Please try again later.",                   // OpenAI
		"That model is currently overloaded with other requests. You can retry your request.",       // OpenAI
		"gpt-6-sol is currently over capacity. Please try again and back off exponentially.",        // Groq
		"The model is at capacity and currently cannot serve this request. Please try again later.", // xAI
		"No capacity available for model gpt-6-sol on the server",                                   // Google
		"This model is currently experiencing high demand. Spikes in demand are usually temporary.", // Google
		"Service is too busy. We advise users to temporarily switch to alternative providers.",      // DeepSeek
		"The server cluster is currently under high load. Please retry after a short wait",          // MiniMax
		"We're experiencing high traffic right now! Please try again soon.",                         // Cerebras
		"The engine is currently overloaded, please try again later",                                // Moonshot
		"Overloaded", // Anthropic
		"该模型当前访问量过大，请您稍后再试", // Zhipu
	} {
		body := []byte(openAI("invalid_request_error", "", message))
		for _, status := range []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusOK} {
			f := from.Classify(status, "application/json", body, nil)
			if f == nil || f.Code != fault.UpstreamBusy || f.Rejection != nil || f.Final() {
				t.Errorf("%d %q: %+v, want upstream_busy for the next line", status, message, f)
				continue
			}
			if f.Health == HealthCool {
				t.Errorf("%d %q: an unproven message cools the line for all accounts", status, message)
			}
		}
	}
}

// TestCapacityWordsAboutTheRequest checks that the same words about a part of the request are still
// a rejection.
func TestCapacityWordsAboutTheRequest(t *testing.T) {
	t.Parallel()
	from := Source{Provider: "openai", BaseURL: "https://relay.example/v1", Model: "gpt-6-sol"}
	for _, body := range []string{
		openAI("invalid_request_error", "", "Unknown parameter: 'model is at capacity, try a different model'."),
		openAI("invalid_request_error", "", "metadata.note: the model is at capacity, try a different model"),
		openAI("invalid_request_error", "", "The value of tool_choice is over capacity for this model."),
		openAI("invalid_request_error", "", "Invalid schema for function \"x\": the server is overloaded"),
		openAI("invalid_request_error", "", "Requested tokens are over capacity of the model."),
		openAI("invalid_request_error", "", "The parameter overloaded is not supported with this model."),
		openAI("invalid_request_error", "unknown_parameter", "Unrecognized request argument supplied: server_overloaded"),
		`{"error":{"message":"model is at capacity, try a different model","type":"invalid_request_error","param":"metadata.note","code":null}}`,
		`{"type":"error","error":{"type":"invalid_request_error","message":"tools.0.custom.overloaded: Extra inputs are not permitted"}}`,
	} {
		for _, status := range []int{http.StatusBadRequest, http.StatusOK} {
			if f := from.Classify(status, "application/json", []byte(body), nil); f == nil || f.Rejection == nil || !f.Final() {
				t.Errorf("%d %s: %+v, want a rejection", status, body, f)
			}
		}
	}
}
