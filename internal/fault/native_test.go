package fault

import "testing"

// TestNativeBody checks the error type of the /native body.
func TestNativeBody(t *testing.T) {
	t.Parallel()
	rejection := func(status int, kind string) *Error {
		return &Error{Code: "vendor_code", Template: "No.", Param: "x", Rejection: &Rejection{Status: status, Type: kind}}
	}
	for _, tt := range []struct {
		err  *Error
		kind string
	}{
		{At(InvalidMaxTokens, "max_tokens", "No."), "invalid_request_error"},
		{New(InsufficientQuota, "No."), "billing_error"},
		{New(ModelMaintenance, "No."), "api_error"},
		{New(ServiceUnavailable, "No."), "overloaded_error"},
		{New(UpstreamTimeout, "No."), "api_error"},
		{New("never_heard_of", "No."), "api_error"},
		{New(RateLimitExceeded, "No."), "rate_limit_error"},
		{&Error{Code: RateLimitExceeded, Template: "No.", Fields: map[string]any{"attempts": nil}}, "overloaded_error"},
		{rejection(413, "request_too_large"), "request_too_large"},
		{rejection(400, "vendor_error"), "invalid_request_error"},
		{rejection(422, ""), "invalid_request_error"},
		{rejection(404, "vendor_error"), "not_found_error"},
	} {
		want := `{"type":"error","error":{"type":"` + tt.kind + `","message":"No."}}`
		if got := string(tt.err.NativeBody()); got != want {
			t.Errorf("NativeBody of %s = %s, want %s", tt.err.Code, got, want)
		}
	}
}
