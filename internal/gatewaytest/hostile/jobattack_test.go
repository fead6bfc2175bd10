package hostile

import (
	"net/http"

	"tollgate/internal/gatewaytest/fakestudio"
)

// jobAttack is the provider's behaviour for a submission.
type jobAttack struct {
	name  string
	how   fakestudio.Behaviour
	times int // submissions with it
}

// jobAttacks returns the attacks for all providers and for the studio.
func (s *studio) jobAttacks() []jobAttack {
	const page = "<html><head><title>no</title></head><body>nginx</body></html>"
	unsafe, _ := s.Unsafe(s.kind)
	soon := says(429, `{"error":{"message":"Too many requests"}}`)
	soon.Header = http.Header{"Retry-After": {"1"}}
	return append(ownAttacks()[s.Name], []jobAttack{
		{"a prompt that the review refuses", unsafe, 2},
		{"a bad field", says(400, `{"error":{"message":"Invalid value: 'insufficient_quota: invalid api key'","code":"invalid_value"}}`), 2},
		{"a field that is called like a notice",
			says(422, `{"detail":[{"loc":["body","prompt"],"msg":"insufficient credits","type":"value_error"}]}`), 2},
		{"content that is refused", says(403, `{"error":{"message":"Content violates usage guidelines."}}`), 2},
		{"a 403 without a word", says(403, `{"error":{"message":"Forbidden"}}`), 6},
		{"a firewall's refusal", says(403, page), 6},
		{"a body that is too long", says(413, page), 6},
		{"a thing that is not there", says(404, `{"error":{"message":"Not Found"}}`), 6},
		{"a 401 by a reference's host", says(401, `{"error":{"message":"the reference asks for a password"}}`), 6},
		{"more than is left", says(402, `{"error":{"message":"too dear"}}`), 6},
		{"a rate", says(429, `{"error":{"message":"Too many requests"}}`), 3},
		{"a rate with a time", soon, 3},
		{"a poison", says(500, `{"error":{"message":"Internal error"}}`), 6},
		{"a poison for what stands before the provider", says(502, page), 6},
		{"a poison that resets the connection", fakestudio.Behaviour{Reset: true}, 6},
		{"a poison whose answer is lost", fakestudio.Behaviour{LoseAnswer: true}, 3},
		{"a task that is lost", fakestudio.Behaviour{Lost: true}, 3},
		{"an overload", says(503, `{"error":{"message":"overloaded"}}`), 6},
	}...)
}

// says returns a refusal of a submission.
func says(status int, body string) fakestudio.Behaviour {
	return fakestudio.Refusal(status, body)
}

// ownAttacks returns attacks in the words of each provider: rejections by its filter, rate limits,
// failures, and fields with texts like those of an account without money.
func ownAttacks() map[string][]jobAttack {
	const verified = `{"error":{"message":"Your organization must be verified to use the model ` + "`gpt-image-2`" + `.",` +
		`"type":"invalid_request_error","param":null,"code":null}}`
	openAI := []jobAttack{
		{"an organization that must be verified", says(403, verified), 6},
		{"pictures by the minute", says(429, `{"error":{"message":"Rate limit reached for x on input-images per min","type":"input-images",`+
			`"code":"rate_limit_exceeded"}}`), 3},
		{"a picture that is none", says(400, `{"error":{"message":"Invalid image file or mode","type":"image_generation_user_error",`+
			`"param":"image","code":"invalid_image_file"}}`), 2},
	}
	return map[string][]jobAttack{
		"openai": openAI, "azure": openAI,
		"kling": {
			{"a parameter", says(400, `{"code":1201,"message":"prompt: account balance not enough","request_id":"r"}`), 6},
			{"a rate of Kling's", says(429, `{"code":1302,"message":"rate","request_id":"r"}`), 3},
			{"a concurrency of Kling's", says(429, `{"code":1303,"message":"parallel tasks","request_id":"r"}`), 3},
			{"a failure of Kling's", says(500, `{"code":5000,"message":"internal","request_id":"r"}`), 6},
			{"a timeout of Kling's", says(504, `{"code":5002,"message":"timeout","request_id":"r"}`), 3},
		},
		"runway": {
			{"words about credits", says(400, `{"error":"Invalid promptText: you do not have enough credits"}`), 6},
			{"the day's generations", says(429, `{"error":"daily limit"}`), 3},
			{"a failure inside", fakestudio.Failure(`{"failureCode":"INTERNAL.BAD_OUTPUT.CODE01","failure":"no"}`), 6},
		},
		"xai": {
			{"words about credits", says(400, `{"code":"Client specified an invalid argument","error":"prompt: incorrect api key, credits"}`), 6},
			{"content", says(403, `{"code":"The caller does not have permission","error":"Content violates usage guidelines."}`), 6},
			{"a rate of xAI's", says(429, `{"code":"Some resource has been exhausted","error":"Too many requests for team"}`), 3},
		},
		"recraft": {
			{"words about credits", says(400, `{"code":"invalid_request_parameter","message":"prompt 'not enough credits' is too long"}`), 6},
			{"a rate of Recraft's", says(429, `{"code":"rate_limit_exceeded","message":"too many images"}`), 3},
		},
		"luma": {
			{"a reference that cannot be fetched", says(503, `{"detail":"Failed to ingest the image"}`), 6},
			{"a combination", says(422, `{"detail":"start_frame is only supported with 5s"}`), 6},
			{"a failure of Luma's", fakestudio.Failure(`{"state":"failed","failure_code":"generation_failed"}`), 6},
			{"a rate inside a task", fakestudio.Failure(`{"state":"failed","failure_code":"rate_limited"}`), 3},
		},
		"minimax": {
			{"a parameter", says(200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params, insufficient balance (1008)"}}`), 6},
			{"a rate of MiniMax's", says(200, `{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}`), 3},
			{"a failure of MiniMax's", says(200, `{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}`), 6},
		},
		"stability": {
			{"content", says(403, `{"id":"1","name":"content_moderation","errors":["no"]}`), 6},
			{"another language", says(422, `{"id":"1","name":"invalid_language","errors":["English is the only supported language"]}`), 6},
			{"a failure of Stability's", says(500, `{"id":"1","name":"internal_error","errors":["no"]}`), 6},
		},
		"ideogram": {
			{"content", says(422, `{"error":"The prompt is unsafe"}`), 6},
			{"pictures at a time", says(429, `{"error":"too many","reject_reason":"inflight_limit"}`), 3},
		},
		"ark": {
			{"content", says(400, `{"error":{"code":"InputTextSensitiveContentDetected","message":"no","type":"BadRequest"}}`), 6},
			{"a rate of Ark's", says(429, `{"error":{"code":"ModelAccountRpmRateLimitExceeded","message":"no","type":"TooManyRequests"}}`), 3},
			{"a failure of Ark's", says(500, `{"error":{"code":"InternalServiceError","message":"no","type":"InternalServerError"}}`), 6},
		},
		"dashscope": {
			{"content", says(400, `{"code":"DataInspectionFailed","message":"no","request_id":"r"}`), 6},
			{"a parameter", says(400, `{"code":"InvalidParameter","message":"Arrearage: access denied, overdue payment","request_id":"r"}`), 6},
			{"a rate of DashScope's", says(429, `{"code":"Throttling.RateQuota","message":"no","request_id":"r"}`), 3},
			{"a failure of DashScope's", says(500, `{"code":"InternalError.Algo","message":"no","request_id":"r"}`), 6},
		},
		"gemini": {
			{"an argument", says(400, `{"error":{"code":400,"message":"API key not valid, billing","status":"INVALID_ARGUMENT"}}`), 6},
			{"a rate of Gemini's", says(429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`), 3},
		},
		"replicate": {
			{"an input", says(422, `{"title":"Input validation failed","detail":"prompt: insufficient credit","status":422}`), 6},
			{"a model that fails", fakestudio.Failure(`{"status":"failed","error":"CUDA out of memory"}`), 6},
		},
		"fal": {
			{"a failure of a runner", fakestudio.Behaviour{Failure: `{"status":500,"body":{"detail":"Internal",` +
				`"error_type":"runner_disconnected"}}`}, 6},
			{"a reference that cannot be fetched", fakestudio.Behaviour{Failure: `{"status":422,"body":{"detail":[{"loc":["body","image_url"],` +
				`"msg":"no","type":"file_download_error"}]}}`}, 6},
		},
		"bfl": {
			{"a body", says(422, `{"detail":[{"loc":["body","prompt"],"msg":"insufficient credits","type":"string_too_long"}]}`), 6},
			{"tasks at a time", says(429, `{"detail":"Too many active tasks"}`), 3},
		},
	}
}
