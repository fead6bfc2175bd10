package wire

import (
	"math"
	"strconv"
	"strings"
)

// maxCount bounds every count that a provider reports; money is computed
// without overflow up to it.
const maxCount = 1 << 40

// count reads a count of tokens: a number, not negative, at most maxCount.
func count(raw []byte) (int64, bool) {
	if len(raw) == 0 || (raw[0] != '-' && (raw[0] < '0' || raw[0] > '9')) {
		return 0, false
	}
	n, ok := integer(raw)
	if !ok {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || math.IsNaN(f) {
			return 0, false
		}
		n = int64(min(max(f, 0), maxCount))
	}
	return min(max(n, 0), maxCount), true
}

// firstCount returns the first of the named members that is a count.
func firstCount(object []byte, names ...string) (int64, bool) {
	for _, name := range names {
		if n, ok := count(field(object, name)); ok {
			return n, true
		}
	}
	return 0, false
}

// readUsage reads a usage object of the chat-completions form in every
// vendor's spelling. It returns false when the object does not say how many
// tokens went in and out; counts of zero are counts.
func readUsage(raw []byte) (Usage, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return Usage{}, false
	}
	var u Usage
	total, hasTotal := firstCount(raw, "total_tokens")
	prompt, ok := firstCount(raw, "prompt_tokens", "input_tokens")
	if !ok {
		return Usage{}, false
	}
	completion, ok := firstCount(raw, "completion_tokens", "output_tokens")
	if !ok {
		if !hasTotal || total < prompt {
			return Usage{}, false
		}
		completion = total - prompt
	}
	details := field(raw, "prompt_tokens_details")
	if details == nil {
		details = field(raw, "input_tokens_details")
	}
	u.Prompt, u.Completion = prompt, completion
	u.Cached, ok = firstCount(details, "cached_tokens")
	if !ok {
		u.Cached, _ = firstCount(raw, "prompt_cache_hit_tokens", "cached_tokens")
	}
	u.CacheWrite, ok = firstCount(details, "cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens")
	if !ok {
		u.CacheWrite, _ = firstCount(raw, "cache_write_tokens", "cache_creation_input_tokens")
	}
	u.Cached = min(u.Cached, u.Prompt)
	u.CacheWrite = min(u.CacheWrite, u.Prompt-u.Cached)

	outDetails := field(raw, "completion_tokens_details")
	if outDetails == nil {
		outDetails = field(raw, "output_tokens_details")
	}
	u.Reasoning, ok = firstCount(outDetails, "reasoning_tokens")
	if !ok {
		u.Reasoning, _ = firstCount(raw, "reasoning_tokens")
	}
	// One family counts reasoning beside the completion; the total tells.
	if hasTotal && u.Reasoning > 0 && total == prompt+completion+u.Reasoning {
		u.Completion += u.Reasoning
	}
	u.Reasoning = min(u.Reasoning, u.Completion)
	u.ServiceTier = unquote(field(raw, "service_tier"))

	for _, name := range []string{"server_tool_use", "server_tool_use_details"} {
		for tool, calls := range members(field(raw, name)) {
			if known := hostedTool(strings.TrimSuffix(string(tool), "_requests")); known != "" {
				if n, ok := count(calls); ok && n > 0 {
					u.addCalls(known, n)
				}
			}
		}
	}
	return u, true
}

// addCalls counts calls of a hosted tool.
func (u *Usage) addCalls(name string, n int64) {
	if u.ToolCalls == nil {
		u.ToolCalls = make(map[string]int64)
	}
	u.ToolCalls[name] = min(u.ToolCalls[name]+n, maxCount)
}
