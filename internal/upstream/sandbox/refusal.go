package sandbox

import (
	"net/http"

	"tollgate/internal/wire"
)

// problem is a provider's error.
type problem struct {
	status                     int
	message, kind, code, param string
}

// errorBody renders the error in a form. The messages form has no param, and a code only in the
// details.
func (p problem) errorBody(form wire.Form, request string) []byte {
	if form == wire.FormMessages {
		e := map[string]any{"type": p.kind, "message": p.message}
		if p.code != "" {
			e["details"] = map[string]any{"error_code": p.code}
		}
		return encode(map[string]any{"type": "error", "error": e, "request_id": "req_" + request})
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return encode(map[string]any{"error": map[string]any{
		"message": p.message, "type": p.kind, "code": null(p.code), "param": null(p.param),
	}})
}

// refusal is a failure with a status and an error object.
type refusal struct {
	retryAfter string
	other      problem // in the chat and responses forms
	messages   problem // in the messages form
}

// refusals returns the failures with a status, by the value of the option `fail`. The gateway
// must classify both errors of a failure alike.
func refusals() map[string]refusal {
	return map[string]refusal{
		"busy": {
			retryAfter: "1",
			other:      problem{http.StatusTooManyRequests, "Rate limit reached for requests.", "requests", "rate_limit_exceeded", ""},
			messages: problem{http.StatusTooManyRequests, "This request would exceed the rate limit of your organization.",
				"rate_limit_error", "", ""},
		},
		"overloaded": {
			other:    problem{http.StatusServiceUnavailable, "The engine is currently overloaded.", "server_error", "", ""},
			messages: problem{statusOverloaded, "Overloaded", "overloaded_error", "", ""},
		},
		"unavailable": {
			other:    problem{http.StatusInternalServerError, "The server had an error.", "server_error", "", ""},
			messages: problem{http.StatusInternalServerError, "Internal server error", "api_error", "", ""},
		},
		"credential": {
			other:    problem{http.StatusUnauthorized, "Incorrect API key provided.", invalidRequest, "invalid_api_key", ""},
			messages: problem{http.StatusUnauthorized, "invalid x-api-key", "authentication_error", "", ""},
		},
		"quota": {
			other:    problem{http.StatusTooManyRequests, "You exceeded your current quota.", "insufficient_quota", "insufficient_quota", ""},
			messages: problem{http.StatusBadRequest, "Your credit balance is too low to access the API.", invalidRequest, "", ""},
		},
		"model": {
			other:    problem{http.StatusNotFound, "The model does not exist.", invalidRequest, "model_not_found", ""},
			messages: problem{http.StatusNotFound, "The model does not exist.", "not_found_error", "", ""},
		},
		"prompt_filter": {
			other:    problem{http.StatusBadRequest, "The prompt was flagged.", invalidRequest, "content_policy_violation", ""},
			messages: problem{http.StatusBadRequest, "The prompt was flagged.", invalidRequest, "content_policy_violation", ""},
		},
		"rejection": {
			other: problem{http.StatusBadRequest, "This model's maximum context length is 8 tokens.", invalidRequest, "context_length_exceeded",
				"messages"},
			messages: problem{http.StatusBadRequest, "prompt is too long: 9 tokens > 8 maximum", invalidRequest, "", ""},
		},
	}
}

// statusOverloaded is the status of an overload in the messages form.
const statusOverloaded = 529

// invalidRequest is the type of errors about the request, in all forms.
const invalidRequest = "invalid_request_error"

// in returns the error of the refusal in a form.
func (r refusal) in(form wire.Form) problem {
	switch form {
	case wire.FormMessages:
		return r.messages
	case wire.FormResponses:
		if r.other.param == "messages" {
			r.other.param = "input"
		}
	}
	return r.other
}

// insideProblem returns the error of the failure `error_inside`.
func insideProblem(form wire.Form) *problem {
	if form == wire.FormMessages {
		return &problem{http.StatusInternalServerError, "Internal server error", "api_error", "", ""}
	}
	return &problem{http.StatusInternalServerError, "The server had an error while processing your request.", "server_error", "", ""}
}
