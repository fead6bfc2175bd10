package errormap

import (
	"fmt"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// each returns a row for each value. format is the format of the row's name.
func each[V any](w want, format string, values []V, reply func(V) fakeprovider.Reply) []row {
	var rows []row
	for _, value := range values {
		rows = append(rows, both(fmt.Sprintf(format, value), reply(value), w))
	}
	return rows
}

const vendorWords = "The vendor's words."

// byCode returns rows that differ in error.code only.
func byCode(vendor string, status int, w want, codes ...string) []row {
	return each(w, fmt.Sprintf("%d %s %%s", status, vendor), codes,
		func(code string) fakeprovider.Reply { return fakeprovider.Error(status, "", code, vendorWords) })
}

// byType returns rows that differ in error.type only.
func byType(vendor string, status int, w want, kinds ...string) []row {
	return each(w, fmt.Sprintf("%d %s %%s", status, vendor), kinds,
		func(kind string) fakeprovider.Reply { return fakeprovider.Error(status, kind, "", vendorWords) })
}

// dashScope returns rows in DashScope's shape: code and message at the top.
func dashScope(status int, w want, codes ...string) []row {
	return each(w, fmt.Sprintf("%d DashScope %%s", status), codes, func(code string) fakeprovider.Reply {
		return fakeprovider.JSON(status, fmt.Sprintf(`{"code":%q,"message":%q,"request_id":"x"}`, code, vendorWords))
	})
}

// statuses returns rows with an error object, one for each status.
func statuses(w want, all ...int) []row {
	return each(w, "%d", all, func(status int) fakeprovider.Reply { return fakeprovider.Error(status, "", "", vendorWords) })
}

// pages returns rows with a web page, one for each status.
func pages(w want, all ...int) []row { return each(w, "%d page", all, fakeprovider.Page) }

// statusRows returns failures before the body of an answer.
func statusRows(t testing.TB) []row {
	var rows []row
	for _, group := range [][]row{
		connectionRows(), timeoutRows(), busyRows(), accountRows(), modelRows(), filterRows(), rejectionRows(t), otherRows(),
	} {
		rows = append(rows, group...)
	}
	return rows
}

// connectionRows returns failures without an HTTP answer.
func connectionRows() []row {
	address := func(url string) func(testing.TB) provider {
		return func(testing.TB) provider { return provider{url: url, requests: func(string) int { return -1 }} }
	}
	wire := func(name, wire string, end fakeprovider.Break) row {
		r := both(name, fakeprovider.Reply{Wire: wire, End: end}, broken())
		r.status = 0
		return r
	}
	before := func(name string, kind fakeprovider.Break) row {
		r := both(name, fakeprovider.Reply{Before: kind}, broken())
		r.status = 0
		return r
	}
	return []row{
		// A label of more than 63 letters is invalid, so the lookup fails without a network.
		{name: "no such host", want: broken(), provider: address("http://" + strings.Repeat("x", 64) + ".invalid/v1")},
		{name: "port refused", want: broken(), provider: func(t testing.TB) provider { return address(fakeprovider.ClosedAddress(t))(t) }},
		{name: "TLS handshake with a plain server", want: broken(), provider: func(t testing.TB) provider {
			return address(strings.Replace(fakeprovider.New(t).URL(), "http:", "https:", 1))(t)
		}},
		{name: "TLS certificate of another name", want: broken(), provider: func(t testing.TB) provider {
			return address(strings.Replace(fakeprovider.NewTLS(t).URL(), "127.0.0.1", "localhost", 1))(t)
		}},
		{name: "HTTP/2 GOAWAY", want: broken(), provider: func(t testing.TB) provider {
			return address(fakeprovider.NewGoAway(t).URL())(t)
		}},
		{name: "HTTP/2 stream reset", want: broken(), provider: func(t testing.TB) provider {
			p := fakeprovider.NewTLS(t)
			p.Always(func(fakeprovider.Request) fakeprovider.Reply { return fakeprovider.Reply{Before: fakeprovider.Reset} })
			return provider{url: p.URL(), requests: func(model string) int { return requestsFor(p, model) }}
		}},
		before("reset before the head", fakeprovider.Reset),
		before("end before the head", fakeprovider.Cut),
		wire("garbage", "SSH-2.0-OpenSSH_9.6\r\n", fakeprovider.None),
		wire("truncated head", "HTTP/1.1 200 OK\r\nContent-Ty", fakeprovider.None),
		wire("truncated head, reset", "HTTP/1.1 200 OK\r\nContent-Ty", fakeprovider.Reset),
		wire("head too long", "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", 128<<10)+"\r\n\r\n", fakeprovider.None),
	}
}

// impatient returns short timeouts of a line, but long enough for a header on a slow machine.
func impatient() map[string]any {
	return map[string]any{"timeouts": map[string]any{"first_token": "1s", "idle": "1s", "total": "1s"}}
}

// stalling returns the row of a provider that stops after a header with this status.
func stalling(name string, status int, reply fakeprovider.Reply) row {
	r := both(name, reply, timedOut())
	r.status, r.line = status, impatient()
	return r
}

// with returns the row with the members of its line.
func (r row) with(line map[string]any) row {
	r.line = line
	return r
}

// timeoutRows returns timeouts of the provider or the gateway.
func timeoutRows() []row {
	rows := []row{
		stalling("connected, no head", 0, fakeprovider.Reply{Before: fakeprovider.Stall}),
		stalling("truncated head, stalled", 0, fakeprovider.Reply{Wire: "HTTP/1.1 200 OK\r\n", End: fakeprovider.Stall}),
		both("504 Anthropic timeout_error", fakeprovider.JSON(504, `{"type":"error","error":{"type":"timeout_error","message":"x"}}`),
			timedOut()),
	}
	rows = append(rows, statuses(timedOut(), 408, 504)...)
	rows = append(rows, pages(timedOut(), 408, 504, 522, 524)...)
	rows = append(rows, statuses(timedOut(), 522, 524)...)
	rows = append(rows, dashScope(408, timedOut(), "RequestTimeOut")...)
	return append(rows, dashScope(500, timedOut(), "InternalError.Timeout")...)
}

// busyRows returns rate limits and overloads.
func busyRows() []row {
	waiting := fakeprovider.Busy(30)
	waiting.Header["Retry-After-Ms"] = "30000"
	rows := []row{
		both("429 rate_limit_exceeded", fakeprovider.Busy(0), busy()),
		both("429 with Retry-After", fakeprovider.Busy(30), busy()),
		both("429 with retry-after-ms", waiting, busy()),
		both("429 empty", fakeprovider.JSON(429, ""), busy()),
		both("429 text", fakeprovider.Reply{Status: 429, ContentType: "text/plain", Body: "slow down"}, busy()),
		both("429 Gemini RESOURCE_EXHAUSTED",
			fakeprovider.JSON(429, `{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}`), busy()),
		both("429 Gemini in an array", fakeprovider.JSON(429, `[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]`), busy()),
		both("429 OpenRouter", fakeprovider.JSON(429, `{"error":{"code":429,"message":"x","metadata":{"error_type":"rate_limit"}}}`), busy()),
		both("529 Anthropic overloaded_error",
			fakeprovider.JSON(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), busy()),
		both("529 empty", fakeprovider.JSON(529, ""), busy()),
		both("503 overloaded", fakeprovider.Error(503, "server_error", "", "The engine is currently overloaded, please try again later"), busy()),
		both("503 Gemini overloaded",
			fakeprovider.JSON(503, `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`), busy()),
		both("503 slow_down", fakeprovider.Error(503, "server_error", "slow_down", "x"), busy()),
	}
	rows = append(rows, pages(busy(), 429)...)
	rows = append(rows, statuses(busy(), 498)...)
	rows = append(rows, byCode("OpenAI", 429, busy(), "slow_down")...)
	rows = append(rows, byType("Anthropic", 429, busy(), "rate_limit_error")...)
	rows = append(rows, byType("Moonshot", 429, busy(), "engine_overloaded_error", "rate_limit_reached_error")...)
	rows = append(rows, dashScope(429, busy(), "Throttling", "Throttling.RateQuota", "Throttling.BurstRate", "LimitRequests")...)
	rows = append(rows, byCode("Zhipu", 429, busy(), "1302", "1303", "1305")...)
	return append(rows, byCode("Ark", 429, busy(), "RateLimitExceeded.EndpointRPMExceeded", "RateLimitExceeded.EndpointTPMExceeded",
		"ModelAccountRpmRateLimitExceeded", "ModelAccountTpmRateLimitExceeded", "ServerOverloaded", "ModelLoadingError")...)
}

// accountRows returns errors about the operator's credential, balance, permission or region.
func accountRows() []row {
	w := unavailable(cred)
	rows := []row{
		both("429 OpenAI insufficient_quota", fakeprovider.Error(429, "insufficient_quota", "insufficient_quota", "x"), w),
		both("401 empty", fakeprovider.JSON(401, ""), w),
		both("401 text", fakeprovider.Reply{Status: 401, ContentType: "text/plain", Body: "no"}, w),
		both("401 with the credential in it", fakeprovider.Error(401, "", "invalid_api_key", "Incorrect API key provided: "+scene.Credential), w),
		both("403 text", fakeprovider.Reply{Status: 403, ContentType: "text/plain", Body: "forbidden"}, w),
		both("400 Anthropic on hold", fakeprovider.JSON(400, `{"type":"error","error":{"type":"invalid_request_error","message":"x",`+
			`"details":{"error_code":"organization_on_hold"}}}`), w),
		both("400 Anthropic spend limit", fakeprovider.JSON(400, `{"type":"error","error":{"type":"invalid_request_error","message":"x",`+
			`"details":{"error_code":"workspace_spend_limit_reached"}}}`), w),
		both("400 Gemini API_KEY_INVALID",
			fakeprovider.JSON(400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",`+
				`"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}`), w),
		both("400 Gemini FAILED_PRECONDITION",
			fakeprovider.JSON(400, `{"error":{"code":400,"message":"User location is not supported.","status":"FAILED_PRECONDITION"}}`), w),
		both("402 OpenRouter", fakeprovider.JSON(402, `{"error":{"code":402,"message":"x"}}`), w),
	}
	rows = append(rows, statuses(w, 401, 402, 403)...)
	rows = append(rows, byType("Moonshot", 429, w, "exceeded_current_quota_error")...)
	rows = append(rows, byCode("Zhipu", 429, w, "1113", "1304")...)
	rows = append(rows, byCode("Ark", 429, w, "QuotaExceeded")...)
	rows = append(rows, byCode("Anthropic", 429, w, "org_spend_limit_reached", "workspace_spend_limit_reached")...)
	rows = append(rows, dashScope(429, w, "Throttling.AllocationQuota", "PrepaidBillOverdue", "PostpaidBillOverdue",
		"CommodityNotPurchased")...)
	rows = append(rows, byCode("OpenAI", 401, w, "invalid_api_key", "account_deactivated", "invalid_organization")...)
	rows = append(rows, byType("Moonshot", 401, w, "invalid_authentication_error")...)
	rows = append(rows, byCode("Ark", 401, w, "AuthenticationError")...)
	rows = append(rows, dashScope(401, w, "InvalidApiKey")...)
	rows = append(rows, byCode("OpenAI", 403, w, "unsupported_country_region_territory")...)
	rows = append(rows, byType("Moonshot", 403, w, "permission_denied_error")...)
	rows = append(rows, byType("Anthropic", 403, w, "permission_error")...)
	rows = append(rows, byType("Anthropic", 402, w, "billing_error")...)
	rows = append(rows, dashScope(403, w, "AccessDenied", "AccessDenied.Unpurchased", "Workspace.AccessDenied")...)
	rows = append(rows, byCode("Ark", 403, w, "AccountOverdueError", "AccessDenied")...)
	rows = append(rows, byCode("OpenAI", 400, w, "billing_hard_limit_reached", "organization_on_hold")...)
	rows = append(rows, dashScope(400, w, "Arrearage")...)
	rows = append(rows, byCode("Ark", 400, w, "AccountOverdueError")...)
	return append(rows, byCode("Zhipu", 400, w, "1113", "1220")...)
}

// modelRows returns errors about the model of a line, or about a field added by the gateway.
func modelRows() []row {
	w := unavailable(pair)
	added := func(param string) fakeprovider.Reply {
		return fakeprovider.JSON(400, fmt.Sprintf(`{"error":{"message":"Unsupported parameter: '%s' is not supported with this model.",`+
			`"type":"invalid_request_error","param":%q,"code":"unsupported_parameter"}}`, param, param))
	}
	options := added("stream_options")
	limit := both("400 for the gateway's limit", added("max_tokens"), w)
	limit.ask, limit.calls = map[string]any{"max_tokens": nil}, 2 // the second call has the other field
	limit.model = map[string]any{"default_output_tokens": 500, "reasoning": true}
	rows := []row{
		both("404 Gemini NOT_FOUND", fakeprovider.JSON(404, `{"error":{"code":404,"message":"x","status":"NOT_FOUND"}}`), w),
		both("404 Anthropic not_found_error",
			fakeprovider.JSON(404, `{"type":"error","error":{"type":"not_found_error","message":"model: x"}}`), w),
		both("404 empty", fakeprovider.JSON(404, ""), w),
		both("410 OpenRouter", fakeprovider.JSON(410, `{"error":{"code":410,"message":"x"}}`), w),
		limit,
		{name: "400 for the gateway's stream_options", want: w, status: 400, stream: &options, ask: map[string]any{}},
	}
	rows = append(rows, pages(w, 404)...)
	rows = append(rows, statuses(w, 404, 410)...)
	rows = append(rows, byCode("OpenAI", 404, w, "model_not_found")...)
	rows = append(rows, dashScope(403, w, "Model.AccessDenied")...)
	rows = append(rows, byType("Moonshot", 404, w, "resource_not_found_error")...)
	rows = append(rows, dashScope(404, w, "ModelNotFound", "WorkSpaceNotFound")...)
	rows = append(rows, byCode("Ark", 404, w, "ModelNotOpen", "InvalidEndpointOrModel.NotFound")...)
	rows = append(rows, byCode("OpenAI", 400, w, "model_not_found")...)
	rows = append(rows, byCode("Ark", 400, w, "ModelNotOpen", "InvalidEndpointOrModel.NotFound")...)
	return append(rows, byCode("Zhipu", 400, w, "1211")...)
}

// filterRows returns prompts blocked by the provider.
func filterRows() []row {
	rows := []row{
		both("400 Azure ResponsibleAIPolicyViolation", fakeprovider.JSON(400, `{"error":{"code":"content_filter","message":"x","status":400,`+
			`"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{}}}}`), stopped()),
		both("400 Azure, only the inner code",
			fakeprovider.JSON(400, `{"error":{"code":null,"message":"x","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`), stopped()),
		both("400 Moonshot considered high risk", fakeprovider.Error(400, "invalid_request_error", "",
			"The request was rejected because it was considered high risk"), stopped()),
		both("403 OpenRouter flagged_input",
			fakeprovider.JSON(403, `{"error":{"code":403,"message":"x","metadata":{"reasons":["violence"],"flagged_input":"…"}}}`), stopped()),
	}
	rows = append(rows, byCode("OpenAI", 400, stopped(), "content_filter", "content_policy_violation", "invalid_prompt")...)
	rows = append(rows, byType("Moonshot", 400, stopped(), "content_filter")...)
	rows = append(rows, byCode("OpenAI", 403, stopped(), "content_filter", "content_policy_violation")...)
	rows = append(rows, byCode("OpenAI", 451, stopped(), "content_filter")...)
	rows = append(rows, dashScope(400, stopped(), "DataInspectionFailed", "data_inspection_failed", "CustomRoleBlocked",
		"FaqRuleBlocked", "IPInfringementSuspect")...)
	rows = append(rows, byCode("Ark", 400, stopped(), "InputTextSensitiveContentDetected", "InputImageSensitiveContentDetected")...)
	return append(rows, byCode("Zhipu", 400, stopped(), "1301")...)
}

// rejectionRows returns errors about the request itself. The client gets the provider's message.
func rejectionRows(t testing.TB) []row {
	var rows []row
	for _, s := range readErrors(t, "rejections.txtar") {
		var status int
		if _, err := fmt.Sscanf(s.name, "%d", &status); err != nil {
			t.Fatalf("rejections.txtar: %s: %v", s.name, err)
		}
		rows = append(rows, s.row(s.name, status))
	}
	for _, status := range []int{405, 406, 418, 421, 423, 451} { // all other client errors
		odd := vendorError{body: `{"error":{"message":"No","type":"odd_error","param":null,"code":"odd"}}`, message: "No",
			want: refused(status, "odd", "odd_error")}
		rows = append(rows, odd.row(fmt.Sprintf("%d with an error", status), status))
	}
	return rows
}

// row returns the error as an answer with this status.
func (e vendorError) row(name string, status int) row {
	r := both(name, fakeprovider.JSON(status, e.body), e.want)
	r.message, r.param = e.message, e.param
	return r
}

// otherRows returns failures of the provider, and answers from proxies in front of the provider.
func otherRows() []row {
	w := outOfOrder()
	text := func(status int) row {
		return both(fmt.Sprintf("%d text", status), fakeprovider.Reply{Status: status, ContentType: "text/plain", Body: "no"}, w)
	}
	rows := []row{
		text(400), text(418), text(422), text(500),
		both("400 empty", fakeprovider.JSON(400, ""), w),
		both("400 broken JSON", fakeprovider.JSON(400, `{"error":{"message":"x"`), w),
		both("400 without an error", fakeprovider.JSON(400, `{"ok":false}`), w),
		both("500 empty", fakeprovider.JSON(500, ""), w),
		both("500 Zhipu 1230", fakeprovider.Error(500, "", "1230", "x"), w),
		both("500 Ark InternalServiceError", fakeprovider.Error(500, "", "InternalServiceError", "x"), w),
		both("500 Anthropic api_error", fakeprovider.JSON(500, `{"type":"error","error":{"type":"api_error","message":"x"}}`), w),
		both("500 with the credential in it", fakeprovider.Error(500, "server_error", "", "at "+scene.Credential), w),
		both("503 with Retry-After", fakeprovider.Reply{Status: 503, Header: map[string]string{"Retry-After": "30"},
			Body: `{"error":{"message":"maintenance"}}`}, w),
		both("error body that stalls", fakeprovider.Reply{Status: 503, AfterHead: fakeprovider.Stall}, w).with(impatient()),
		both("error body that is cut", fakeprovider.Reply{Status: 500, Body: `{"error":{`, Length: 1000}, w),
		both("300 with JSON", fakeprovider.Error(300, "", "x", "x"), w),
		both("304", fakeprovider.JSON(304, ""), w),
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		rows = append(rows, both(fmt.Sprintf("%d", status), fakeprovider.Reply{Status: status,
			Header: map[string]string{"Location": "/v1/elsewhere"}}, w))
	}
	rows = append(rows, dashScope(500, w, "InternalError", "InternalError.Algo", "SystemError", "ModelServiceFailed")...)
	rows = append(rows, dashScope(503, w, "ModelUnavailable")...)
	rows = append(rows, statuses(w, 409, 425, 499, 500, 501, 502, 503, 520, 521, 523, 525, 526, 527, 530)...)
	return append(rows, pages(w, 400, 401, 402, 403, 418, 500, 502, 503, 520, 521, 523, 525, 526, 527, 530)...)
}
