package fault

import (
	"net/http"
	"strings"
)

// NativeType returns error.type of the /native shape (interface.md, `/native` endpoints). For a
// rejection, it is the provider's own type if the /native shape has that type.
func (e *Error) NativeType() string {
	if e.Rejection != nil {
		if isNativeType(e.Rejection.Type) {
			return e.Rejection.Type
		}
		return nativeTypeOf(e.Rejection.Status)
	}
	if _, busy := e.Fields["attempts"]; busy { // every line is busy
		return "overloaded_error"
	}
	if row, ok := Lookup(e.Code); ok {
		return row.Native
	}
	return "api_error"
}

// NativeBody returns the whole error body in the /native format, for a response and for the error
// event of a stream.
func (e *Error) NativeBody() []byte {
	var b struct {
		Type  string `json:"type"`
		Error struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
	}
	b.Type, b.Error.Type, b.Error.Message = "error", e.NativeType(), e.Message()
	out, _ := encode(b) // strings only: cannot fail
	return out
}

// isNativeType reports whether kind is an error.type of the /native shape.
func isNativeType(kind string) bool {
	switch kind {
	case "invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
		"conflict_error", "request_too_large", "rate_limit_error", "api_error", "timeout_error", "overloaded_error":
		return true
	}
	return false
}

// nativeTypeOf returns the type for a rejection by a provider with another form.
func nativeTypeOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	}
	return "invalid_request_error"
}

// IsNative reports whether path belongs to the native form, which has its own error format.
func IsNative(path string) bool {
	return path == "/native" || strings.HasPrefix(path, "/native/")
}

// WriteNative answers a /native request with e (interface.md, Error object of /native endpoints).
func (e *Error) WriteNative(w http.ResponseWriter) { e.send(w, e.NativeBody()) }
