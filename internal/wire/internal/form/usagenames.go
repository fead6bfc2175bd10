package form

import (
	"slices"
	"strings"

	"tollgate/internal/wire/rawjson"
)

// knownUsage are the documented members of usage objects: charged, part of a charged count, or
// free. Any other member may count tokens billed on top.
var knownUsage = func() map[string]bool {
	known := map[string]bool{}
	for name := range strings.FieldsSeq(`
		prompt_tokens completion_tokens total_tokens prompt_tokens_details prompt_token_details completion_tokens_details
		input_tokens output_tokens input_tokens_details output_tokens_details
		cached_tokens num_cached_tokens prompt_cache_hit_tokens prompt_cache_miss_tokens cache_write_tokens reasoning_tokens
		cache_creation cache_creation_input_tokens cache_read_input_tokens iterations server_tool_use fallback_credit
		service_tier speed inference_geo
		cost cost_details cost_in_usd_ticks is_byok
		num_search_queries search_context_size citation_tokens num_sources_used plugins tool_calls_details
		server_tool_use_details server_side_tool_usage_details
		queue_time prompt_time completion_time total_time prompt_audio_seconds request_count
		x_details image_tokens text_tokens audio_tokens video_tokens context_details
	`) {
		known[name] = true
	}
	return known
}()

// maxUnknown is the largest number of unknown members recorded for one answer.
const maxUnknown = 4

// IsKnownUsage reports whether a member of a usage object is known.
func IsKnownUsage(name []byte) bool { return knownUsage[string(name)] }

// AppendUnknown appends the name of an unknown member if its value holds a number above zero.
func AppendUnknown(list []string, name, value []byte) []string {
	if len(list) >= maxUnknown || !isMemberName(name) || !holdsNumber(value, 0) || slices.Contains(list, string(name)) {
		return list
	}
	return append(list, string(name))
}

// isMemberName reports whether a name may become the label of a metric.
func isMemberName(name []byte) bool {
	if len(name) == 0 || len(name) > 40 {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// holdsNumber reports whether a value is or contains a number above zero.
func holdsNumber(value []byte, depth int) bool {
	const deepest = 4
	if len(value) == 0 || depth > deepest {
		return false
	}
	switch c := value[0]; {
	case c >= '0' && c <= '9':
		return strings.ContainsAny(string(value), "123456789")
	case c == '{':
		for _, inner := range rawjson.Members(value) {
			if holdsNumber(inner, depth+1) {
				return true
			}
		}
	case c == '[':
		for _, inner := range rawjson.Elements(value) {
			if holdsNumber(inner, depth+1) {
				return true
			}
		}
	}
	return false
}
