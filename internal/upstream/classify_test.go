package upstream

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"tollgate/internal/fault"
)

// verdict holds the decisions of Classify about a response.
type verdict struct {
	code   fault.Code
	health Health
	passed int // the status passed on to the client, or 0
}

// The expected verdicts of the table, except rejections.
var (
	timeout      = verdict{fault.UpstreamTimeout, HealthFail, 0}
	busy         = verdict{fault.UpstreamBusy, HealthCool, 0}
	credential   = verdict{fault.UpstreamUnavailable, HealthCredential, 0}
	noModel      = verdict{fault.UpstreamUnavailable, HealthModel, 0}
	failed       = verdict{fault.UpstreamUnavailable, HealthFail, 0}
	promptFilter = verdict{fault.UpstreamPromptFilter, HealthNone, 0}
	filtered     = verdict{fault.ContentFilter, HealthNone, 0}
)

// rejected returns the verdict of a rejection that is passed on.
func rejected(status int, code fault.Code) verdict { return verdict{code, HealthNone, status} }

const htmlPage = "<!DOCTYPE html><html><body>Access denied</body></html>"

// openAI returns an error in OpenAI's format; empty parts become null.
func openAI(kind, code, message string) string {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	out, _ := json.Marshal(map[string]any{"error": map[string]any{
		"message": message, "type": null(kind), "code": null(code), "param": nil}})
	return string(out)
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   verdict
	}{
		// Timeouts.
		{"408", 408, openAI("", "", "timeout"), timeout},
		{"504", 504, openAI("", "", "timeout"), timeout},
		{"504 page", 504, htmlPage, timeout},
		{"522 page", 522, htmlPage, timeout},
		{"524 page", 524, htmlPage, timeout},
		{"Anthropic timeout", 504, `{"type":"error","error":{"type":"timeout_error","message":"x"}}`, timeout},
		{"timeout named in a 500", 500, `{"code":"InternalError.Timeout","message":"x"}`, timeout},

		// Rate limits and overloads.
		{"429", 429, openAI("requests", "rate_limit_exceeded", "slow"), busy},
		{"429 without a body", 429, "", busy},
		{"429 page", 429, htmlPage, busy},
		{"DashScope", 429, `{"code":"Throttling.RateQuota","message":"x","request_id":"y"}`, busy},
		{"Gemini", 429, `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`, busy},
		{"Gemini in an array", 429, `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`, busy},
		{"Moonshot", 429, openAI("engine_overloaded_error", "", "x"), busy},
		{"Zhipu 1302", 429, openAI("", "1302", "x"), busy},
		{"Zhipu 1305", 400, openAI("", "1305", "x"), busy},
		{"Ark", 429, openAI("", "ModelAccountRpmRateLimitExceeded", "x"), busy},
		{"Ark overloaded", 429, openAI("", "ServerOverloaded", "x"), busy},
		{"Groq 498", 498, openAI("", "", "flex capacity"), busy},
		{"Anthropic 529", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, busy},
		{"529 empty", 529, "", busy},
		{"503 overloaded", 503, openAI("server_error", "", "The engine is currently overloaded"), busy},
		{"Gemini overloaded", 503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, busy},

		// A 429 about the gateway's account.
		{"OpenAI quota", 429, openAI("insufficient_quota", "insufficient_quota", "x"), credential},
		{"Moonshot quota", 429, openAI("exceeded_current_quota_error", "", "x"), credential},
		{"DashScope quota", 429, `{"code":"Throttling.AllocationQuota","message":"x"}`, credential},
		{"DashScope overdue", 429, openAI("", "PostpaidBillOverdue", "x"), credential},
		{"Ark quota", 429, openAI("", "QuotaExceeded", "x"), credential},
		{"Ark set limit", 429, openAI("", "SetLimitExceeded", "x"), credential},
		{"Zhipu balance", 429, openAI("", "1113", "x"), credential},
		{"Zhipu daily quota", 429, openAI("", "1304", "x"), credential},
		{"spend limit", 429, openAI("", "org_spend_limit_reached", "x"), credential},

		// Credential, balance, permission, region.
		{"401", 401, openAI("invalid_request_error", "invalid_api_key", "x"), credential},
		{"401 empty", 401, "", credential},
		{"402", 402, openAI("", "", "x"), credential},
		{"403", 403, openAI("", "unsupported_country_region_territory", "x"), credential},
		{"403 text", 403, "forbidden", credential},
		{"MiniMax key", 200, `{"base_resp":{"status_code":1004,"status_msg":"x"}}`, credential},
		{"MiniMax balance", 200, `{"choices":null,"base_resp":{"status_code":1008,"status_msg":"x"}}`, credential},

		// A 400 that names the gateway's account.
		{"Anthropic on hold", 400,
			`{"type":"error","error":{"type":"invalid_request_error","message":"x","details":{"error_code":"organization_on_hold"}}}`, credential},
		{"Anthropic spend limit", 400,
			`{"type":"error","error":{"type":"invalid_request_error","message":"x","details":{"error_code":"workspace_spend_limit_reached"}}}`,
			credential},
		{"on hold", 400, openAI("invalid_request_error", "organization_on_hold", "x"), credential},
		{"Gemini key", 400, `{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`,
			credential},
		{"Gemini key for other services", 400,
			`{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"@type":"x"},{"reason":"API_KEY_SERVICE_BLOCKED"}]}}`,
			credential},
		{"Gemini key, permission", 403, `{"error":{"code":403,"message":"leaked","status":"PERMISSION_DENIED"}}`, credential},
		{"Gemini billing", 400, `{"error":{"code":400,"message":"x","status":"FAILED_PRECONDITION"}}`, credential},
		{"DashScope arrears", 400, `{"code":"Arrearage","message":"x"}`, credential},
		{"OpenAI hard limit", 400, openAI("invalid_request_error", "billing_hard_limit_reached", "x"), credential},

		// Missing models.
		{"404", 404, openAI("invalid_request_error", "model_not_found", "x"), noModel},
		{"404 page", 404, htmlPage, noModel},
		{"404 of an item", 404, `{"error":{"message":"Item 'rs_1' not found.","type":"invalid_request_error","param":"input","code":null}}`,
			rejected(400, fault.InvalidRequest)},
		{"404 of an item, no param", 404, openAI("invalid_request_error", "", "Item with id 'msg_1' not found."),
			rejected(400, fault.InvalidRequest)},
		{"410", 410, openAI("", "", "x"), noModel},
		{"Ark not open", 400, openAI("", "ModelNotOpen", "x"), noModel},
		{"Ark endpoint", 400, openAI("", "InvalidEndpointOrModel.NotFound", "x"), noModel},
		{"Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`, noModel},
		{"Gemini model", 404, `{"error":{"code":404,"message":"x","status":"NOT_FOUND"}}`, noModel},
		{"Zhipu 1211", 400, openAI("", "1211", "x"), noModel},

		// The provider's check stopped the prompt.
		{"Azure", 400, `{"error":{"code":"content_filter","message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, promptFilter},
		{"Azure, inner name only", 400, `{"error":{"code":null,"message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
			promptFilter},
		{"OpenAI", 400, openAI("invalid_request_error", "content_policy_violation", "x"), promptFilter},
		{"OpenAI prompt", 400, openAI("invalid_request_error", "invalid_prompt", "x"), promptFilter},
		{"DashScope inspection", 400, `{"code":"DataInspectionFailed","message":"x"}`, promptFilter},
		{"Ark sensitive", 400, openAI("", "InputTextSensitiveContentDetected", "x"), promptFilter},
		{"Zhipu 1301", 400, openAI("", "1301", "x"), promptFilter},
		{"MiniMax 1026", 200, `{"base_resp":{"status_code":1026,"status_msg":"x"}}`, promptFilter},
		{"Moonshot wording", 400, openAI("invalid_request_error", "", "The request was rejected because it was considered high risk"),
			promptFilter},
		{"OpenRouter flagged", 403, `{"error":{"code":403,"message":"x","metadata":{"flagged_input":"…","reasons":["y"]}}}`, promptFilter},
		{"451", 451, openAI("", "content_filter", "x"), promptFilter},
		{"Gemini blocked", 200, `{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"x"},"usageMetadata":{}}`, promptFilter},
		{"Gemini blocked, no candidates", 200, `{"candidates":[],"promptFeedback":{"blockReason":"OTHER"}}`, promptFilter},

		// Rejections of the request, passed on.
		{"context too long", 400, openAI("invalid_request_error", "context_length_exceeded", "x"), rejected(400, "context_length_exceeded")},
		{"llama.cpp too long", 400, openAI("exceed_context_size_error", "", "the request exceeds the available context size"),
			rejected(400, ContextLengthExceeded)},
		{"Zhipu too long", 400, openAI("", "1261", "x"), rejected(400, ContextLengthExceeded)},
		{"no code", 400, openAI("invalid_request_error", "", "x"), rejected(400, fault.InvalidRequest)},
		{"a number as code", 400, `{"error":{"message":"x","type":"BadRequestError","code":1214}}`, rejected(400, "1214")},
		{"413", 413, openAI("request_too_large", "", "x"), rejected(413, fault.InvalidRequest)},
		{"Groq 413 by rate", 413, openAI("tokens", "rate_limit_exceeded", "x"), rejected(413, "rate_limit_exceeded")},
		{"415", 415, openAI("", "", "x"), rejected(415, fault.InvalidRequest)},
		{"422 FastAPI", 422, `{"detail":[{"loc":["body","messages",0,"role"],"msg":"bad role","type":"enum"}]}`,
			rejected(422, fault.InvalidRequest)},
		{"Mistral", 400, `{"object":"error","message":"x","type":"invalid_request_error","param":null,"code":null}`,
			rejected(400, fault.InvalidRequest)},
		{"xAI", 400, `{"code":"Client specified an invalid argument","error":"x"}`, rejected(400, "Client specified an invalid argument")},
		{"another 4xx", 418, openAI("", "teapot", "x"), rejected(418, "teapot")},
		{"451 without a name", 451, openAI("", "", "x"), rejected(451, fault.InvalidRequest)},

		// Unknown errors that are not about the request.
		{"409", 409, openAI("", "", "x"), failed},
		{"425", 425, openAI("", "", "x"), failed},
		{"499", 499, openAI("", "", "x"), failed},
		{"500", 500, openAI("server_error", "", "x"), failed},
		{"501", 501, openAI("server_error", "", "x"), failed},
		{"502", 502, openAI("server_error", "", "x"), failed},
		{"503", 503, openAI("server_error", "", "maintenance"), failed},
		{"503 page", 503, htmlPage, failed},
		{"520", 520, htmlPage, failed},
		{"530", 530, htmlPage, failed},
		{"500 that names a rate", 500, openAI("", "rate_limit_exceeded", "x"), failed},

		// Responses that are not from the provider's API.
		{"301", 301, "", failed},
		{"307 with JSON", 307, openAI("", "x", "x"), failed},
		{"400 page", 400, htmlPage, failed},
		{"403 page", 403, htmlPage, failed},
		{"400 text", 400, "Bad Request", failed},
		{"400 empty", 400, "", failed},
		{"400 broken JSON", 400, `{"error":{"message":"x"`, failed},
		{"400 without an error", 400, `{"ok":false}`, failed},
		{"200 page", 200, htmlPage, failed},
		{"200 text", 200, "hello", failed},
		{"200 empty", 200, "", failed},

		// Errors inside a 200.
		{"inner server error", 200, openAI("server_error", "", "x"), failed},
		{"inner overloaded", 200, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`, busy},
		{"inner rate", 200, openAI("rate_limit_error", "", "x"), busy},
		{"inner key", 200, openAI("authentication_error", "", "x"), credential},
		{"inner model", 200, openAI("not_found_error", "", "x"), noModel},
		{"inner rejection", 200, openAI("invalid_request_error", "context_length_exceeded", "x"), rejected(400, "context_length_exceeded")},
		{"inner size", 200, openAI("request_too_large", "", "x"), rejected(413, fault.InvalidRequest)},
		{"inner unknown", 200, openAI("", "", "x"), failed},
		{"OpenRouter 429", 200, `{"error":{"code":429,"message":"x"},"choices":[{"finish_reason":"error"}]}`, busy},
		{"OpenRouter 402", 200, `{"error":{"code":402,"message":"x"}}`, credential},
		{"OpenRouter 400", 200, `{"error":{"code":400,"message":"x"}}`, rejected(400, "400")},
		{"Gemini in a stream", 200, `[{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}]`, failed},
		{"Gemini argument", 200, `{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}`, rejected(400, "400")},
		{"OpenRouter 502", 200, `{"error":{"code":502,"message":"x"}}`, failed},
		{"relay", 200, `{"code":500,"msg":"x"}`, failed},
		{"relay, no channel", 200, `{"code":"get_channel_failed","message":"no available channel"}`, failed},
		{"Groq in a chunk", 200, `{"choices":[{"delta":{}}],"x_groq":{"error":"over capacity"}}`, failed},
		{"MiniMax unknown", 200, `{"base_resp":{"status_code":1000,"status_msg":"x"}}`, failed},
		{"MiniMax timeout", 200, `{"base_resp":{"status_code":1001,"status_msg":"x"}}`, timeout},
		{"MiniMax rate", 200, `{"base_resp":{"status_code":1002,"status_msg":"x"}}`, busy},
		{"MiniMax output", 200, `{"base_resp":{"status_code":1027,"status_msg":"x"}}`, filtered},
		{"MiniMax parameter", 200, `{"base_resp":{"status_code":2013,"status_msg":"x"}}`, rejected(400, "2013")},
		{"Responses failed", 200, `{"object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`, failed},
		{"Responses rate", 200, `{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"}}`, busy},
		{"Responses prompt", 200, `{"status":"failed","error":{"code":"invalid_prompt","message":"x"}}`, promptFilter},
		{"Responses policy", 200, `{"status":"failed","error":{"code":"bio_policy","message":"x"}}`, promptFilter},
		{"Responses policy violation", 200, `{"status":"failed","error":{"code":"misalignment_policy_violation","message":"x"}}`, promptFilter},
		{"Responses image policy", 200, `{"status":"failed","error":{"code":"image_content_policy_violation","message":"x"}}`, promptFilter},
		{"Responses image", 200, `{"status":"failed","error":{"code":"invalid_image","message":"x"}}`, rejected(400, "invalid_image")},
		{"Responses image size", 200, `{"status":"failed","error":{"code":"image_too_large","message":"x"}}`, rejected(400, "image_too_large")},
		{"Responses image link", 200, `{"status":"failed","error":{"code":"failed_to_download_image","message":"x"}}`,
			rejected(400, "failed_to_download_image")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			contentType := "application/json"
			if strings.HasPrefix(tt.body, "<") {
				contentType = "text/html; charset=utf-8"
			}
			f := Classify(tt.status, contentType, []byte(tt.body), nil)
			if f == nil {
				t.Fatal("passes for a good answer")
			}
			if f.Code != tt.want.code || f.Health != tt.want.health {
				t.Errorf("code %s, health %s, want %s, %s", f.Code, f.Health, tt.want.code, tt.want.health)
			}
			if f.Status != tt.status {
				t.Errorf("status %d", f.Status)
			}
			e := f.Fault()
			if got := f.Rejection != nil; got != (tt.want.passed != 0) {
				t.Fatalf("passed on: %t", got)
			} else if got && e.Status() != tt.want.passed {
				t.Errorf("passed on with status %d, want %d", e.Status(), tt.want.passed)
			} else if !got && e.Status() != 502 && e.Code != fault.ContentFilter {
				t.Errorf("the client sees status %d", e.Status())
			}
			if e.Message() == "" || f.Cause == nil || f.Cause.Error() == "" {
				t.Errorf("message or cause is missing: message %q, cause %v", e.Message(), f.Cause)
			}
		})
	}
}

func TestClassifyGoodAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"id":"x","object":"chat.completion","choices":[{"message":{"content":"hi"}}]}`,
		`{"choices":[],"error":null}`,
		`{"choices":[{}],"message":"beside","code":"beside"}`,
		`{"choices":[{}],"base_resp":{"status_code":0,"status_msg":""}}`,
		`{"type":"message","content":[],"usage":{}}`,
		`{"object":"response","status":"completed","error":null,"output":[]}`,
		"\n {\"object\":\"chat.completion.chunk\",\"choices\":[]}",
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"promptFeedback":{"safetyRatings":[]}}`,
		`{}`,
	} {
		if f := Classify(200, "application/json", []byte(body), nil); f != nil {
			t.Errorf("%s is classified as %v", body, f)
		}
	}
}

func TestRejectionIsPassedOnAsItIs(t *testing.T) {
	t.Parallel()
	f := Classify(400, "application/json", []byte(`{"error":{"message":"Unsupported parameter: 'max_tokens'",
		"type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`), nil)
	want := `{"error":{"message":"Unsupported parameter: 'max_tokens'","type":"invalid_request_error","code":"unsupported_parameter",` +
		`"param":"max_tokens"}}`
	if got := string(f.Fault().Body()); got != want {
		t.Errorf("body %s\nwant %s", got, want)
	}
	if !f.Final() {
		t.Error("the failure is not final")
	}
	f = Classify(400, "", []byte(`{"error":{"message":["x"],"type":7,"param":{"a":1},"code":[]}}`), nil)
	want = `{"error":{"message":"The model's provider rejected the request without saying why.","type":"invalid_request_error",` +
		`"code":"invalid_request","param":null}}`
	if got := string(f.Fault().Body()); got != want {
		t.Errorf("odd types: body %s\nwant %s", got, want)
	}
	f = Classify(422, "", []byte(`{"detail":[{"loc":["body","messages",0,"role"],"msg":"bad role"}]}`), nil)
	if e := f.Fault(); e.Param != "messages.0.role" || e.Message() != "bad role" {
		t.Errorf("param %q, message %q", e.Param, e.Message())
	}
}

func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 5000) + "\u0007\x00"
	f := Classify(400, "", []byte(openAI(long, long, long)), nil)
	e := f.Fault()
	if len(e.Message()) > maxMessage+len("…") || len(e.Code) > maxName+len("…") || len(e.Type()) > maxName+len("…") {
		t.Errorf("lengths: message %d, code %d, type %d", len(e.Message()), len(e.Code), len(e.Type()))
	}
	if !utf8.ValidString(e.Message()) || strings.ContainsRune(e.Message(), utf8.RuneError) {
		t.Error("the message was cut within a character")
	}
	if len(f.Cause.Error()) > maxCause+len("…") {
		t.Errorf("cause has %d bytes", len(f.Cause.Error()))
	}
	if got := tidy(" a\nb\tc\x00d\u0085 ", 100); got != "a b cd" {
		t.Errorf("tidy: %q", got)
	}
	e = Classify(400, "", []byte(openAI("x", "y", "Two faults:\n- a\r\n- b\u0000\n")), nil).Fault()
	if e.Message() != "Two faults:\n- a\n- b" {
		t.Errorf("a message of several lines: %q", e.Message())
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	const now = "Mon, 02 Jan 2006 15:04:05 GMT"
	for _, tt := range []struct {
		header http.Header
		want   time.Duration
	}{
		{http.Header{"Retry-After": {"7"}}, 7 * time.Second},
		{http.Header{"Retry-After": {"0.5"}}, 500 * time.Millisecond},
		{http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}, 250 * time.Millisecond},
		{http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:35 GMT"}, "Date": {now}}, 30 * time.Second},
		{http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:00:00 GMT"}, "Date": {now}}, 0},
		{http.Header{"Retry-After": {"Mon, 02 Jan 2006 15:04:35 GMT"}}, 0},
		{http.Header{"Retry-After": {"1e300"}}, time.Hour},
		{http.Header{"Retry-After": {"-1"}}, 0},
		{http.Header{"Retry-After": {"NaN"}}, 0},
		{http.Header{"Retry-After": {"soon"}}, 0},
		{nil, 0},
	} {
		if got := Classify(429, "", nil, tt.header).RetryAfter; got != tt.want {
			t.Errorf("%v: %s, want %s", tt.header, got, tt.want)
		}
	}
}

// TestRetryInfo checks that a wait in the body counts if no header has a wait.
func TestRetryInfo(t *testing.T) {
	t.Parallel()
	body := func(delay string) []byte {
		return []byte(`{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":` +
			delay + `}]}}`)
	}
	for delay, want := range map[string]time.Duration{
		`"36.5s"`: 36500 * time.Millisecond, `"90000s"`: time.Hour, `"-3s"`: 0, `"soon"`: 0, `{"seconds":3}`: 0, `7`: 0,
	} {
		f := Classify(429, "application/json", body(delay), nil)
		if f.Code != fault.UpstreamBusy || f.RetryAfter != want {
			t.Errorf("%s: %s, %s", delay, f.Code, f.RetryAfter)
		}
	}
	if f := Classify(429, "application/json", body(`"36s"`), http.Header{"Retry-After": {"7"}}); f.RetryAfter != 7*time.Second {
		t.Errorf("RetryAfter %s, want the header's 7s", f.RetryAfter)
	}
}

func FuzzClassify(f *testing.F) {
	for _, status := range []int{200, 301, 400, 403, 429, 503} {
		for _, body := range []string{"", htmlPage, openAI("a", "b", "c"), `[{"error":{"details":[{"reason":"x"}]}}]`,
			`{"detail":[{"loc":[1],"msg":2}]}`, `{"base_resp":{"status_code":-1e99}}`, `{"error":"x","code":1}`} {
			f.Add(status, "application/json", []byte(body), "7")
		}
	}
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte, wait string) {
		got := Classify(status, contentType, body, http.Header{"Retry-After": {wait}})
		if got == nil {
			if status < 200 || status > 299 {
				t.Fatalf("status %d passes for a good answer", status)
			}
			return
		}
		e := got.Fault()
		if e.Status() < 400 || e.Status() == 401 || e.Status() == 402 || e.Status() == 403 || e.Status() == 429 {
			t.Errorf("the client would see status %d", e.Status())
		}
		if got.Rejection == nil {
			if _, ok := fault.Lookup(got.Code); !ok {
				t.Errorf("unknown code %q", got.Code)
			}
		} else if got.Health != HealthNone {
			t.Errorf("a rejection of the request harms the line: %s", got.Health)
		}
		if got.RetryAfter < 0 || got.RetryAfter > maxRetryAfter {
			t.Errorf("wait %s", got.RetryAfter)
		}
		if len(e.Message()) > maxMessage+8 || len(got.Error()) > 2*maxMessage || !utf8.ValidString(e.Message()) {
			t.Errorf("message of %d bytes, error of %d", len(e.Message()), len(got.Error()))
		}
		if !json.Valid(e.Body()) {
			t.Errorf("body %s", e.Body())
		}
	})
}

// TestNamesInDetails checks the error names in the entries of a list of details, and in error_type
// beside a text.
func TestNamesInDetails(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		job  fault.Code
		next Next
	}{
		`{"detail":[{"loc":["body","prompt"],"msg":"no","type":"content_policy_violation"}]}`: {fault.ContentPolicy, NextNone},
		`{"detail":[{"msg":"x","type":"string_type"},{"msg":"no face","type":"face_detection_error"}]}`: {
			fault.InvalidMaterial, NextLine},
		`{"detail":[{"loc":["body","duration"],"msg":"Input should be less","type":"less_than_equal"}]}`:        {fault.InvalidRequest, NextLine},
		`{"detail":"took too long","error_type":"request_timeout"}`:                                             {fault.RenderTimeout, NextLine},
		`{"detail":[{"msg":"x","type":7},{"msg":"y","type":["no_media_generated"]},"no_media_generated",null]}`: {fault.InvalidRequest, NextLine},
		`{"detail":[` + strings.Repeat(`{"type":"x"},`, maxDetails) + `{"type":"no_media_generated"}]}`:         {fault.InvalidRequest, NextLine},
	} {
		if got := SubmitFailure(KindVideo, 422, "application/json", []byte(body), nil); got.Job != want.job || got.Next != want.next {
			t.Errorf("%s: %s, next %d, want %s, %d", body, got.Job, got.Next, want.job, want.next)
		}
	}
}
