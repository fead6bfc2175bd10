package fault

// Code is a stable error code (interface.md, Codes by category).
type Code string

// The codes of HTTP errors. Each stands in the table below; those of failed jobs
// are in job.go.
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
	// ClientClosed is what the request log shows for a client that left before
	// the first byte; no client ever sees it.
	ClientClosed Code = "client_closed"
)

// TableRow is what the table says of one code.
type TableRow struct {
	Code   Code
	Status int    // HTTP status
	Type   string // error.type of the /v1 shape
	Native string // error.type of the /native shape
}

// table is the one place that ties a code to a status and both types
// (interface.md, Errors; types as ARCHITECTURE.md, Errors, says).
var table = []TableRow{
	{MissingAPIKey, 401, "authentication_error", "authentication_error"},
	{InvalidAPIKey, 401, "authentication_error", "authentication_error"},
	{InsufficientQuota, 402, "insufficient_quota", "billing_error"},
	{PermissionDenied, 403, "permission_error", "permission_error"},
	{RateLimitExceeded, 429, "rate_limit_error", "rate_limit_error"},
	{InvalidJSON, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidEncoding, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidRequest, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidMessages, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidRole, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidMaxTokens, 400, "invalid_request_error", "invalid_request_error"},
	{MaxTokensTooSmall, 400, "invalid_request_error", "invalid_request_error"},
	{RequestTooLarge, 413, "invalid_request_error", "invalid_request_error"},
	{MethodNotAllowed, 405, "invalid_request_error", "invalid_request_error"},
	{NotFound, 404, "not_found_error", "not_found_error"},
	{ModelNotFound, 400, "invalid_request_error", "not_found_error"},
	{ModelDisabled, 400, "invalid_request_error", "invalid_request_error"},
	{ModelComingSoon, 400, "invalid_request_error", "invalid_request_error"},
	{ModelMaintenance, 503, "service_unavailable", "api_error"},
	{ServiceUnavailable, 503, "service_unavailable", "overloaded_error"},
	{UpstreamTimeout, 502, "upstream_error", "api_error"},
	{UpstreamUnavailable, 502, "upstream_error", "api_error"},
	{UpstreamBusy, 502, "upstream_error", "api_error"},
	{UpstreamConnectionError, 502, "upstream_error", "api_error"},
	{EmptyCompletion, 502, "upstream_error", "api_error"},
	{UpstreamError, 502, "upstream_error", "api_error"},
	{ContentFilter, 400, "invalid_request_error", "invalid_request_error"},
	{UpstreamPromptFilter, 502, "upstream_error", "api_error"},
	{InvalidCatalog, 400, "invalid_request_error", "invalid_request_error"},
	{MissingPrompt, 400, "invalid_request_error", "invalid_request_error"},
	{UnsupportedResolution, 400, "invalid_request_error", "invalid_request_error"},
	{InvalidCallbackURL, 400, "invalid_request_error", "invalid_request_error"},
	{JobNotFound, 404, "not_found_error", "not_found_error"},
}

// Table returns a copy of the table, for tests and for documents made from it.
func Table() []TableRow { return append([]TableRow(nil), table...) }

// Lookup returns the row of a code; false for a code that is a provider's own.
func Lookup(code Code) (TableRow, bool) {
	for _, row := range table {
		if row.Code == code {
			return row, true
		}
	}
	return TableRow{}, false
}
