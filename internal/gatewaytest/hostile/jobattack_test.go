package hostile

import (
	"net/http"

	"tollgate/internal/gatewaytest/fakestudio"
)

// jobAttack is the provider's behaviour for submissions of the hostile account.
type jobAttack struct {
	name      string
	behaviour fakestudio.Behaviour
	times     int // number of submissions
}

// jobAttacks returns the studio's own attacks and the attacks for all providers.
func (s *studio) jobAttacks() []jobAttack {
	const page = "<html><head><title>no</title></head><body>nginx</body></html>"
	unsafe, _ := s.Unsafe(s.kind)
	retryAfterOne := rejects(429, `{"error":{"message":"Too many requests"}}`)
	retryAfterOne.Header = http.Header{"Retry-After": {"1"}}
	return append(ownAttacks()[s.Name], []jobAttack{
		{"a prompt rejected by the filter", unsafe, 2},
		{"a bad field", rejects(400, `{"error":{"message":"Invalid value: 'insufficient_quota: invalid api key'","code":"invalid_value"}}`), 2},
		{"a field named like a billing notice",
			rejects(422, `{"detail":[{"loc":["body","prompt"],"msg":"insufficient credits","type":"value_error"}]}`), 2},
		{"rejected content", rejects(403, `{"error":{"message":"Content violates usage guidelines."}}`), 2},
		{"a 403 without a reason", rejects(403, `{"error":{"message":"Forbidden"}}`), 6},
		{"a rejection by a firewall", rejects(403, page), 6},
		{"a body above the limit", rejects(413, page), 6},
		{"a 404", rejects(404, `{"error":{"message":"Not Found"}}`), 6},
		{"a 401 from a reference's host", rejects(401, `{"error":{"message":"the reference asks for a password"}}`), 6},
		{"a request above the balance", rejects(402, `{"error":{"message":"too dear"}}`), 6},
		{"a rate limit", rejects(429, `{"error":{"message":"Too many requests"}}`), 3},
		{"a rate limit with Retry-After", retryAfterOne, 3},
		{"a request that breaks the provider", rejects(500, `{"error":{"message":"Internal error"}}`), 6},
		{"a request that breaks the provider's proxy", rejects(502, page), 6},
		{"a request that resets the connection", fakestudio.Behaviour{Reset: true}, 6},
		{"a lost answer", fakestudio.Behaviour{LoseAnswer: true}, 3},
		{"a lost task", fakestudio.Behaviour{Lost: true}, 3},
		{"an overload", rejects(503, `{"error":{"message":"overloaded"}}`), 6},
	}...)
}

// rejects returns a behaviour that rejects a submission.
func rejects(status int, body string) fakestudio.Behaviour {
	return fakestudio.Refusal(status, body)
}

// ownAttacks returns the attacks of each provider, in the provider's format: rejections by the
// filter, rate limits, failures, and fields with texts like billing notices.
func ownAttacks() map[string][]jobAttack {
	const verified = `{"error":{"message":"Your organization must be verified to use the model ` + "`gpt-image-2`" + `.",` +
		`"type":"invalid_request_error","param":null,"code":null}}`
	openAI := []jobAttack{
		{"an organization that must be verified", rejects(403, verified), 6},
		{"an image rate limit", rejects(429, `{"error":{"message":"Rate limit reached for x on input-images per min","type":"input-images",`+
			`"code":"rate_limit_exceeded"}}`), 3},
		{"an invalid image", rejects(400, `{"error":{"message":"Invalid image file or mode","type":"image_generation_user_error",`+
			`"param":"image","code":"invalid_image_file"}}`), 2},
	}
	return map[string][]jobAttack{
		"openai": openAI, "azure": openAI,
		"kling": {
			{"a parameter", rejects(400, `{"code":1201,"message":"prompt: account balance not enough","request_id":"r"}`), 6},
			{"a rate limit of Kling", rejects(429, `{"code":1302,"message":"rate","request_id":"r"}`), 3},
			{"a concurrency limit of Kling", rejects(429, `{"code":1303,"message":"parallel tasks","request_id":"r"}`), 3},
			{"a failure of Kling", rejects(500, `{"code":5000,"message":"internal","request_id":"r"}`), 6},
			{"a timeout of Kling", rejects(504, `{"code":5002,"message":"timeout","request_id":"r"}`), 3},
		},
		"runway": {
			{"words about credits", rejects(400, `{"error":"Invalid promptText: you do not have enough credits"}`), 6},
			{"a daily limit", rejects(429, `{"error":"daily limit"}`), 3},
			{"an internal failure", fakestudio.Failure(`{"failureCode":"INTERNAL.BAD_OUTPUT.CODE01","failure":"no"}`), 6},
		},
		"xai": {
			{"words about credits", rejects(400, `{"code":"Client specified an invalid argument","error":"prompt: incorrect api key, credits"}`), 6},
			{"content", rejects(403, `{"code":"The caller does not have permission","error":"Content violates usage guidelines."}`), 6},
			{"a rate limit of xAI", rejects(429, `{"code":"Some resource has been exhausted","error":"Too many requests for team"}`), 3},
		},
		"recraft": {
			{"words about credits", rejects(400, `{"code":"invalid_request_parameter","message":"prompt 'not enough credits' is too long"}`), 6},
			{"a rate limit of Recraft", rejects(429, `{"code":"rate_limit_exceeded","message":"too many images"}`), 3},
		},
		"luma": {
			{"a reference that cannot be fetched", rejects(503, `{"detail":"Failed to ingest the image"}`), 6},
			{"an unsupported combination", rejects(422, `{"detail":"start_frame is only supported with 5s"}`), 6},
			{"a failure of Luma", fakestudio.Failure(`{"state":"failed","failure_code":"generation_failed"}`), 6},
			{"a rate limit inside a task", fakestudio.Failure(`{"state":"failed","failure_code":"rate_limited"}`), 3},
		},
		"minimax": {
			{"a parameter", rejects(200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params, insufficient balance (1008)"}}`), 6},
			{"a rate limit of MiniMax", rejects(200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`), 3},
			{"a failure of MiniMax", rejects(200, `{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}`), 6},
		},
		"stability": {
			{"content", rejects(403, `{"id":"1","name":"content_moderation","errors":["no"]}`), 6},
			{"an unsupported language", rejects(422, `{"id":"1","name":"invalid_language","errors":["English is the only supported language"]}`), 6},
			{"a failure of Stability", rejects(500, `{"id":"1","name":"internal_error","errors":["no"]}`), 6},
		},
		"ideogram": {
			{"content", rejects(422, `{"error":"The prompt is unsafe"}`), 6},
			{"a limit of concurrent images", rejects(429, `{"error":"too many","reject_reason":"inflight_limit"}`), 3},
		},
		"ark": {
			{"content", rejects(400, `{"error":{"code":"InputTextSensitiveContentDetected","message":"no","type":"BadRequest"}}`), 6},
			{"Ark's rate limit", rejects(429, `{"error":{"code":"ModelAccountRpmRateLimitExceeded","message":"no","type":"TooManyRequests"}}`), 3},
			{"a failure of Ark", rejects(500, `{"error":{"code":"InternalServiceError","message":"no","type":"InternalServerError"}}`), 6},
		},
		"dashscope": {
			{"content", rejects(400, `{"code":"DataInspectionFailed","message":"no","request_id":"r"}`), 6},
			{"a parameter", rejects(400, `{"code":"InvalidParameter","message":"Arrearage: access denied, overdue payment","request_id":"r"}`), 6},
			{"a rate limit of DashScope", rejects(429, `{"code":"Throttling.RateQuota","message":"no","request_id":"r"}`), 3},
			{"a failure of DashScope", rejects(500, `{"code":"InternalError.Algo","message":"no","request_id":"r"}`), 6},
		},
		"gemini": {
			{"an invalid argument", rejects(400, `{"error":{"code":400,"message":"API key not valid, billing","status":"INVALID_ARGUMENT"}}`), 6},
			{"Gemini rate", rejects(429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`), 3},
		},
		"replicate": {
			{"an invalid input", rejects(422, `{"title":"Input validation failed","detail":"prompt: insufficient credit","status":422}`), 6},
			{"a model that fails", fakestudio.Failure(`{"status":"failed","error":"CUDA out of memory"}`), 6},
		},
		"fal": {
			{"a failure of a runner", fakestudio.Behaviour{Failure: `{"status":500,"body":{"detail":"Internal",` +
				`"error_type":"runner_disconnected"}}`}, 6},
			{"a reference that cannot be fetched", fakestudio.Behaviour{Failure: `{"status":422,"body":{"detail":[{"loc":["body","image_url"],` +
				`"msg":"no","type":"file_download_error"}]}}`}, 6},
		},
		"bfl": {
			{"an invalid body", rejects(422, `{"detail":[{"loc":["body","prompt"],"msg":"insufficient credits","type":"string_too_long"}]}`), 6},
			{"a limit of concurrent tasks", rejects(429, `{"detail":"Too many active tasks"}`), 3},
		},
	}
}
