package upstream

import "strings"

// reason is the meaning of an error body, according to its error names and wording.
type reason int

const (
	reasonNone         reason = iota
	reasonAccount             // the gateway's account, key or balance at the provider
	reasonModel               // the provider does not offer the model to the gateway
	reasonFilter              // the provider's check stopped the prompt
	reasonOutput              // the provider's check withheld the answer
	reasonAccountWords        // reasonAccount, or a feature not available to the gateway's account
	reasonMissing             // reasonModel, or a missing item of the request
	reasonBusy                // rate limited or overloaded
	reasonTimeout             // the provider ran out of time
	reasonServer              // a failure in the provider
	reasonRequest             // the request is at fault
	reasonDown                // a failure in the provider, even with a 4xx status
	reasonUnaffordable        // the gateway's balance does not cover this request's output limit
	reasonCapacity            // overloaded, in words that a request could contain
)

// reasonOf returns the reason of a notice. The error names decide. The wording counts only
// if the vendor has no name for the error.
func (s Source) reasonOf(n notice) reason {
	byWording := s.reasonOfWording(n)
	if byWording == reasonUnaffordable { // the error name wrongly says that the account is empty
		return byWording
	}
	best := reasonNone
	for _, signal := range n.signals {
		// The lowest reason wins, so that a specific code beats a broad type
		// ("insufficient_quota" beside "rate_limit_error").
		r := reasonOfName(signal)
		if named := reasonOfInteraction(signal); named != reasonNone && s.isFrom(vendorGoogle) {
			r = named
		}
		if r == reasonNone && n.param == "" {
			r = s.reasonOfNumber(signal)
		}
		if r != reasonNone && (best == reasonNone || r < best) {
			best = r
		}
	}
	if best == reasonModel && n.param != "" && n.param != "model" {
		return reasonMissing // for example, the model of a tool
	}
	if best != reasonNone && best < reasonAccountWords {
		return best
	}
	if byWording != reasonNone {
		return byWording
	}
	switch best {
	case reasonNone, reasonServer, reasonRequest:
		if s.isAtCapacity(n) {
			return reasonCapacity
		}
	}
	return best
}

// baseRespMark marks a number as MiniMax's, because the same numbers have other meanings
// at other vendors.
const baseRespMark = "base_resp:"

// blockReasonMark marks Gemini's reason to reject a prompt, because other vendors use the
// same words (OTHER) for anything.
const blockReasonMark = "blocked:"

// reasonOfName returns the reason for an error name in lower case.
func reasonOfName(name string) reason {
	if number, ok := strings.CutPrefix(name, baseRespMark); ok {
		switch number {
		case "1004", "1008", "2049":
			return reasonAccount
		case "1026":
			return reasonFilter
		case "1027":
			return reasonOutput
		case "1002", "1039", "1041":
			return reasonBusy
		case "1001":
			return reasonTimeout
		case "1042", "2013", "2054", "20132": // the last two: the voice
			return reasonRequest
		default:
			return reasonServer
		}
	}
	switch name {
	case "insufficient_quota", "exceeded_current_quota_error", "billing_hard_limit_reached",
		"billing_not_active", "billing_error", "account_deactivated", "organization_on_hold",
		"invalid_api_key", "invalid_organization", "authentication_error",
		"invalid_authentication_error", "authenticationerror", "unauthenticated",
		"unsupported_country_region_territory", "api_key_invalid", "api_key_service_blocked",
		"arrearage", "prepaidbilloverdue", "postpaidbilloverdue", "commoditynotpurchased",
		"throttling.allocationquota", "quotaexceeded", "setlimitexceeded", "accountoverdueerror", "invalidapikey",
		"accessdenied.unpurchased", "workspace.accessdenied", "operationdenied.servicenotopen", "operationdenied.serviceoverdue",
		"wrong_api_key", "insufficient_balance_error", "authorized_error", // Cerebras, MiniMax
		"organization_restricted", "blocked_api_access", "openrouter_credits", "openrouter_key_limit", // Groq, OpenRouter
		"insufficient_user_quota", "pre_consume_token_quota_failed", // relays
		"service_disabled", "billing_disabled", "consumer_suspended", // Google
		"quota_exceeded", "detected_unusual_activity", "invalid_auth", "asr_payment_required", // ElevenLabs, Deepgram
		"expiredtokenexception", "unrecognizedclientexception", "invalidsignatureexception": // Amazon
		return reasonAccount
	case "model_not_found", "modelnotfound", "modelnotopen", "model.accessdenied",
		"invalidendpointormodel.notfound", "invalid_model", "model_decommissioned", "model_terms_required",
		"model_permission_blocked_org", "model_permission_blocked_project", "model_not_available", "dedicated_endpoint_not_running",
		"deploymentnotfound":
		return reasonModel
	case "permission_error", "permission_denied_error", "missing_permissions", "insufficient_permissions",
		"permission_denied", "failed_precondition", "accessdenied",
		"accessdeniedexception":
		return reasonAccountWords
	case "not_found_error", "resource_not_found_error", "resourcenotfoundexception":
		return reasonMissing
	case "content_filter", "content_policy_violation", "invalid_prompt", "datainspectionfailed",
		"data_inspection_failed", "customroleblocked", "faqruleblocked", "ipinfringementsuspect",
		"responsibleaipolicyviolation", "flagged_input":
		return reasonFilter
	case "rate_limit_exceeded", "rate_limit_error", "rate_limit_reached_error", "limitrequests",
		"resource_exhausted", "engine_overloaded_error", "overloaded_error", "slow_down",
		"serveroverloaded", "modelloadingerror", "service_tier_capacity_exceeded", "openrouter_in_flight_budget",
		"throttlingexception", "modelnotreadyexception":
		return reasonBusy
	case "timeout_error", "requesttimeout", "internalerror.timeout", "deadline_exceeded",
		"modeltimeoutexception":
		return reasonTimeout
	case "server_error", "api_error", "internal_server_error", "internalserviceerror",
		"internalerror", "internalerror.algo", "systemerror", "modelservicefailed",
		"modelunavailable", "service_unavailable", "unavailable", "internal", "500":
		return reasonServer
	case "invalid_request_error", "request_too_large", "invalid_argument", "invalidparameter", "invalid_parameter_error",
		"badrequesterror", "bad_request_error", "validationexception",
		"missingparameter", "context_length_exceeded", "unsupported_parameter", "unsupported_value",
		"invalid_value", "missing_required_parameter", "unknown_parameter",
		"string_above_max_length", "tool_use_failed", "invalid_image", "invalid_image_format",
		"invalid_image_mode", "invalid_image_url", "invalid_base64_image", "image_too_large",
		"image_too_small", "image_parse_error", "image_file_too_large", "image_file_not_found",
		"unsupported_image_media_type", "empty_image_file", "failed_to_download_image":
		return reasonRequest
	}
	switch {
	case strings.HasSuffix(name, "_spend_limit_reached"):
		return reasonAccount
	case strings.Contains(name, "sensitivecontentdetected"), strings.HasPrefix(name, blockReasonMark),
		strings.HasSuffix(name, ".datainspectionfailed"), strings.HasSuffix(name, "_policy"), strings.HasSuffix(name, "_policy_violation"):
		return reasonFilter
	case strings.HasPrefix(name, "throttling"), strings.HasPrefix(name, "ratelimitexceeded"),
		strings.HasSuffix(name, "ratelimitexceeded"):
		return reasonBusy
	}
	return reasonNone
}
