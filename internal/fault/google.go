package fault

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// googleDomain is the domain of the gateway's codes in the details of Google's errors.
const googleDomain = "tollgate"

// GoogleBody returns the whole error body in the format of Google's APIs, for a response and for the
// last object of a stream. The details have the gateway's code, the field at fault and the wait.
func (e *Error) GoogleBody() []byte {
	type detail map[string]any
	metadata := map[string]string{"code": string(e.Code)}
	if e.Param != "" {
		metadata["param"] = e.Param
	}
	details := []detail{{
		"@type":  "type.googleapis.com/google.rpc.ErrorInfo",
		"reason": strings.ToUpper(string(e.Code)), "domain": googleDomain, "metadata": metadata,
	}}
	if e.Param != "" && e.Status() == http.StatusBadRequest {
		details = append(details, detail{
			"@type":           "type.googleapis.com/google.rpc.BadRequest",
			"fieldViolations": []map[string]string{{"field": e.Param, "description": e.Message()}},
		})
	}
	if e.RetryAfter > 0 {
		details = append(details, detail{
			"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", WholeSeconds(e.RetryAfter)),
		})
	}
	var b struct {
		Error struct {
			Code    int      `json:"code"`
			Message string   `json:"message"`
			Status  string   `json:"status"`
			Details []detail `json:"details"`
		} `json:"error"`
	}
	b.Error.Code, b.Error.Message, b.Error.Status, b.Error.Details = e.Status(), e.Message(), googleStatus(e.Status()), details
	out, _ := encode(b) // strings only: cannot fail
	return out
}

// googleStatus returns the name of an HTTP status in Google's errors (google.rpc.Code).
func googleStatus(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case http.StatusPaymentRequired:
		return "FAILED_PRECONDITION"
	case http.StatusForbidden:
		return "PERMISSION_DENIED"
	case http.StatusNotFound:
		return "NOT_FOUND"
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return "UNIMPLEMENTED"
	case http.StatusConflict:
		return "ABORTED"
	case http.StatusTooManyRequests:
		return "RESOURCE_EXHAUSTED"
	case http.StatusInternalServerError:
		return "INTERNAL"
	case http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	}
	if status >= http.StatusInternalServerError {
		return "UNAVAILABLE"
	}
	return "INVALID_ARGUMENT"
}

// googleMethods end the paths of the Gemini form.
var googleMethods = []string{":generateContent", ":streamGenerateContent", ":countTokens"}

// IsGoogle reports whether path belongs to the Gemini form, which has Google's error format: the models
// below /v1beta, and their methods below /v1, which Google's newer clients use.
func IsGoogle(path string) bool {
	if strings.HasPrefix(path, "/v1/models/") {
		return slices.ContainsFunc(googleMethods, func(method string) bool { return strings.HasSuffix(path, method) })
	}
	return path == "/v1beta/models" || strings.HasPrefix(path, "/v1beta/models/")
}

// WriteGoogle answers a request of the Gemini form with e.
func (e *Error) WriteGoogle(w http.ResponseWriter) {
	e.setRetryAfter(w.Header())
	e.send(w, e.GoogleBody())
}
