package fault

// Code is a stable error code (interface.md, Codes by category).
type Code string

// The codes of HTTP errors, each with a row in the table below. The codes of failed jobs are in
// job.go.
const (
	MissingAPIKey           Code = "missing_api_key"
	InvalidAPIKey           Code = "invalid_api_key"
	InsufficientQuota       Code = "insufficient_quota"
	PermissionDenied        Code = "permission_denied"
	RateLimitExceeded       Code = "rate_limit_exceeded"
	InvalidJSON             Code = "invalid_json"
	InvalidEncoding         Code = "invalid_encoding"
	InvalidRequest          Code = "invalid_request"
	InvalidMessages         Code = "invalid_messages"
	InvalidRole             Code = "invalid_role"
	InvalidMaxTokens        Code = "invalid_max_tokens"
	MaxTokensTooSmall       Code = "max_tokens_too_small"
	RequestTooLarge         Code = "request_too_large"
	MethodNotAllowed        Code = "method_not_allowed"
	NotFound                Code = "not_found"
	ModelNotFound           Code = "model_not_found"
	ModelDisabled           Code = "model_disabled"
	ModelComingSoon         Code = "model_coming_soon"
	ModelMaintenance        Code = "model_maintenance"
	ServiceUnavailable      Code = "service_unavailable"
	UpstreamTimeout         Code = "upstream_timeout"
	UpstreamUnavailable     Code = "upstream_unavailable"
	UpstreamBusy            Code = "upstream_busy"
	UpstreamConnectionError Code = "upstream_connection_error"
	EmptyCompletion         Code = "empty_completion"
	UpstreamError           Code = "upstream_error"
	ContentFilter           Code = "content_filter"
	UpstreamPromptFilter    Code = "upstream_prompt_filter"
	InvalidCatalog          Code = "invalid_catalog"
	MissingPrompt           Code = "missing_prompt"
	UnsupportedResolution   Code = "unsupported_resolution"
	InvalidCallbackURL      Code = "invalid_callback_url"
	JobNotFound             Code = "job_not_found"
	// ClientClosed is the code in the request log for a client that disconnected before the first
	// byte; no client ever sees the code.
	ClientClosed Code = "client_closed"
)

// TableRow is the table row for one code.
type TableRow struct {
	Code   Code
	Status int    // HTTP status
	Type   string // error.type of the /v1 shape
	Native string // error.type of the /native shape
	Scope  Scope
	Retry  Retry
	When   string // condition for the code, in Markdown without a full stop
	Do     string // advice to the client, in Markdown sentences
}

// table gives each code a status, its types, its meaning and its advice (interface.md, Errors). The
// error reference and the descriptions in the OpenAPI documents are generated from the table.
var table = []TableRow{
	{MissingAPIKey, 401, "authentication_error", "authentication_error", Everywhere, RetryNever,
		"no `Authorization: Bearer` header",
		"Send the key in `Authorization: Bearer <API_KEY>`; below `/native`, `x-api-key: <API_KEY>` works too."},
	{InvalidAPIKey, 401, "authentication_error", "authentication_error", Everywhere, RetryNever,
		"the key does not exist, was deleted or is disabled, or its account is disabled",
		"Check the key for missing characters and spaces. If the key is right, ask the person who gave it to you: the key or its account " +
			"may be disabled. The operator API needs the operator's token."},
	{InsufficientQuota, 402, "insufficient_quota", "billing_error", Admissions, RetryNever,
		"balance, daily budget or total limit do not allow the request's highest possible cost",
		"Add credit, raise the budget or limit of the key, or ask for less: a lower `max_tokens`, fewer or shorter inputs, fewer or smaller " +
			"images, a shorter clip. `message` says which of them is short. A daily budget starts again at 00:00 UTC. Running requests hold " +
			"money too: when they end, there may be enough."},
	{PermissionDenied, 403, "permission_error", "permission_error", ClientAPI, RetryNever,
		"the key does not allow the model or the caller's address",
		"Use a model that the key allows (`param` is `model`), or call from an address that the key allows. The operator can change " +
			"both lists."},
	{RateLimitExceeded, 429, "rate_limit_error", "rate_limit_error", Limits, RetryRoom,
		"over the requests per minute, or the account's token counts per minute; or the free requests of the day are " +
			"used up; or all providers of the model are busy and the request was not sent, with `Retry-After` and the top-level member `attempts`",
		"Send fewer requests at a time, or have the requests per minute of the key raised. Free requests of a model start again at " +
			"00:00 UTC."},
	{InvalidJSON, 400, "invalid_request_error", "invalid_request_error", Everywhere, RetryNever,
		"the body is not JSON, repeats a key, or is nested too deeply",
		"Correct the body: `message` names the byte or the repeated key. If the body was cut off on its way, send it again."},
	{InvalidEncoding, 400, "invalid_request_error", "invalid_request_error", Everywhere, RetryNever,
		"the body is not UTF-8, or is compressed",
		"Send UTF-8 without `Content-Encoding`."},
	{InvalidRequest, 400, "invalid_request_error", "invalid_request_error", Everywhere, RetryNever,
		"the body is no object, a field has a wrong value, or asks for what is not offered; also a provider's rejection without a " +
			"code",
		"Change the field that `param` names. `message` says how."},
	{InvalidMessages, 400, "invalid_request_error", "invalid_request_error", Conversations, RetryNever,
		"`messages` is missing, empty or malformed",
		"Correct the message that `param` names."},
	{InvalidRole, 400, "invalid_request_error", "invalid_request_error", Completions, RetryNever,
		"a role that is not allowed",
		"Use system, developer, user, assistant, tool or function."},
	{InvalidMaxTokens, 400, "invalid_request_error", "invalid_request_error", Outputs, RetryNever,
		"the limit is not a positive integer",
		"Send a positive integer. Except in native messages, you may omit the limit."},
	{MaxTokensTooSmall, 400, "invalid_request_error", "invalid_request_error", Completions, RetryNever,
		"a model used up the request's limit on thinking and wrote no answer (not streamed)",
		"Raise the limit that `param` names, or let the model think less (`reasoning_effort`, `thinking`)."},
	{RequestTooLarge, 413, "invalid_request_error", "invalid_request_error", Everywhere, RetryNever,
		"the body is longer than the limit",
		"Send less in one request: fewer or smaller images, or images by address."},
	{MethodNotAllowed, 405, "invalid_request_error", "invalid_request_error", Everywhere, RetryNever,
		"the path exists, but not with this method",
		"Use a method that the header `Allow` names."},
	{NotFound, 404, "not_found_error", "not_found_error", Everywhere, RetryNever,
		"there is no such path or id",
		"Check the base address of the client, the path and the id; `/docs` lists all paths."},
	{ModelNotFound, 400, "invalid_request_error", "not_found_error", Models, RetryNever,
		"`model` is missing, unknown, or not usable on this endpoint",
		"Take an id from `GET /v1/models`, and one of its `endpoints`."},
	{ModelDisabled, 400, "invalid_request_error", "invalid_request_error", Models, RetryNever,
		"the model was retired",
		"Use another model of `GET /v1/models`."},
	{ModelComingSoon, 400, "invalid_request_error", "invalid_request_error", Models, RetryNever,
		"the model is announced but not open yet",
		"Wait until `GET /v1/models` says that it is `open`, or use another model."},
	{ModelMaintenance, 503, "service_unavailable", "api_error", Models, RetryOpen,
		"the model is under maintenance",
		"Use another model, or wait until `GET /v1/models` says that it is `open`."},
	{ServiceUnavailable, 503, "service_unavailable", "overloaded_error", Everywhere, RetryLater,
		"a temporary fault of the gateway; with `Retry-After` under overload or while the database is unavailable; also on " +
			"`/v1/responses` when no provider is available for a moment",
		"Send the request again. If the error lasts for minutes, tell the operator, with the id in `x-request-id`."},
	{UpstreamTimeout, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the provider took too long, for example for the first token",
		"Send the request again. Stream long answers, because then only the time to the first token is limited."},
	{UpstreamUnavailable, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the provider failed or is paused after failures; with `Retry-After` and the top-level member `retry_after` if the end of the " +
			"pause is known",
		"Wait for the time in `Retry-After` if there is one; otherwise use another model or tell the operator."},
	{UpstreamBusy, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the provider limits the gateway's rate",
		"Wait for the time in `Retry-After` if there is one, otherwise for some seconds. Send fewer requests at a time."},
	{UpstreamConnectionError, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the gateway could not connect to the provider, or the connection broke",
		"Send the request again."},
	{EmptyCompletion, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the provider's answer was empty",
		"Send the request again. If the same prompt does it each time, change the prompt."},
	{UpstreamError, 502, "upstream_error", "api_error", Calls, RetryLater,
		"the provider answered with an error sentence instead of an answer",
		"Send the request again."},
	{ContentFilter, 400, "invalid_request_error", "invalid_request_error", Calls, RetryNever,
		"the model returned nothing because of the provider's safety policy",
		"Change the prompt."},
	{UpstreamPromptFilter, 502, "upstream_error", "api_error", Calls, RetryNever,
		"the provider's check stopped the prompt",
		"Change the prompt. The official clients repeat any 502 by themselves, without harm."},
	{InvalidCatalog, 400, "invalid_request_error", "invalid_request_error", Operators, RetryNever,
		"operator API: the catalog has faults",
		"Correct what `faults` lists: each fault has a path in the document and a reason."},
	{MissingPrompt, 400, "invalid_request_error", "invalid_request_error", Jobs, RetryNever,
		"an image submission without `prompt`, or a video submission with neither `prompt` nor a reference",
		"Describe the image or video in `prompt`."},
	{UnsupportedResolution, 400, "invalid_request_error", "invalid_request_error", Images, RetryNever,
		"the image model does not offer the resolution tier",
		"Use a tier that `price` of the model has in `GET /v1/models`."},
	{InvalidCallbackURL, 400, "invalid_request_error", "invalid_request_error", Jobs, RetryNever,
		"`callback_url` is not a public http(s) address, or is longer than 2000 characters",
		"Send a public `http://` or `https://` address, or omit the field and poll the job."},
	{JobNotFound, 404, "not_found_error", "not_found_error", JobPolls, RetryNever,
		"the job id is unknown, belongs to another account or kind, or its record was deleted after 3 days",
		"Check the id, the key's account and the path: `/v1/images/jobs/` for images, `/v1/videos/jobs/` for videos. Fetch results " +
			"before the record is deleted."},
}

// Table returns a copy of the table, for tests and for generated documents.
func Table() []TableRow { return append([]TableRow(nil), table...) }

// Lookup returns the row of code, and false for a provider's own code.
func Lookup(code Code) (TableRow, bool) {
	for _, row := range table {
		if row.Code == code {
			return row, true
		}
	}
	return TableRow{}, false
}
