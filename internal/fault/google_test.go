package fault

import (
	"net/http/httptest"
	"testing"
	"time"
)

// TestGoogleBody checks Google's format: the status and its name, and the gateway's code, field and wait in
// the details.
func TestGoogleBody(t *testing.T) {
	t.Parallel()
	info := func(reason, metadata string) string {
		return `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"tollgate","metadata":{` + metadata + `},"reason":"` + reason + `"}`
	}
	busy := New(RateLimitExceeded, "Wait.")
	busy.RetryAfter = 1500 * time.Millisecond
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{At(InvalidMaxTokens, "generationConfig.maxOutputTokens", "`{param}` is <wrong>."),
			`{"error":{"code":400,"message":"` + "`generationConfig.maxOutputTokens` is <wrong>." + `","status":"INVALID_ARGUMENT","details":[` +
				info("INVALID_MAX_TOKENS", `"code":"invalid_max_tokens","param":"generationConfig.maxOutputTokens"`) +
				`,{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"description":"` +
				"`generationConfig.maxOutputTokens` is <wrong>." + `","field":"generationConfig.maxOutputTokens"}]}]}}`},
		{busy, `{"error":{"code":429,"message":"Wait.","status":"RESOURCE_EXHAUSTED","details":[` +
			info("RATE_LIMIT_EXCEEDED", `"code":"rate_limit_exceeded"`) +
			`,{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"2s"}]}}`},
		{New(InsufficientQuota, "No."), `{"error":{"code":402,"message":"No.","status":"FAILED_PRECONDITION","details":[` +
			info("INSUFFICIENT_QUOTA", `"code":"insufficient_quota"`) + `]}}`},
	} {
		if got := string(tt.err.GoogleBody()); got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.err.Code, got, tt.want)
		}
	}
	for code, status := range map[Code]string{
		InvalidAPIKey: "UNAUTHENTICATED", PermissionDenied: "PERMISSION_DENIED", NotFound: "NOT_FOUND", MethodNotAllowed: "UNIMPLEMENTED",
		ServiceUnavailable: "UNAVAILABLE", UpstreamUnavailable: "UNAVAILABLE", RequestTooLarge: "INVALID_ARGUMENT",
	} {
		if got := googleStatus(New(code, "No.").Status()); got != status {
			t.Errorf("%s is %s, want %s", code, got, status)
		}
	}
	w := httptest.NewRecorder()
	busy.WriteGoogle(w)
	if w.Code != 429 || w.Header().Get("Retry-After") != "2" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestIsGoogle checks which paths have Google's format.
func TestIsGoogle(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1beta/models": true, "/v1beta/models/m": true, "/v1beta/models/m:generateContent": true, "/v1beta/modelsx": false,
		"/v1beta/interactions": false, "/v1/models": false, "/v1/models/m": false, "/v1/models/a/b:streamGenerateContent": true,
		"/v1/models/m:countTokens": true, "/v1/models/m:other": false, "/native/v1/models/m:countTokens": false,
	} {
		if got := IsGoogle(path); got != want {
			t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
}
