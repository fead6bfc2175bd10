package catalog

import (
	"regexp"
	"strconv"
	"strings"
)

// limitFlags are the beta flags of the messages form that raise a limit of the model, and so the
// cost of a request (AnthropicBeta in @anthropic-ai/sdk 1.11.0). A flag names the new limit:
// context-1m-2025-08-07 (prompts above 200,000 tokens cost more on the models with this flag),
// output-128k-2025-02-19, output-300k-2026-03-24. Flags for just a field or a tool (fast-mode,
// compact, advisor-tool, server-side-fallback, extended-cache-ttl and others) are not listed,
// because the field or the tool needs a price.
var limitFlags = []struct {
	pattern *regexp.Regexp // matches the number and its unit
	limit   func(*Model) int64
}{
	{regexp.MustCompile(`^context-(\d{1,6})([km])(-|$)`), func(m *Model) int64 { return m.ContextWindow }},
	{regexp.MustCompile(`^output-(\d{1,6})([km])(-|$)`), func(m *Model) int64 { return m.MaxOutputTokens }},
}

// AllowsFlag reports whether a line may get a beta flag with a request for the model. A flag that
// raises a limit is only allowed if the model's limit in the catalog is at least as high, because
// the model's prices are only known up to this limit.
func (m *Model) AllowsFlag(flag string) bool {
	flag = strings.ToLower(strings.TrimSpace(flag))
	for _, limitFlag := range limitFlags {
		match := limitFlag.pattern.FindStringSubmatch(flag)
		if match == nil {
			continue
		}
		n, _ := strconv.ParseInt(match[1], 10, 64)
		if match[2] == "k" {
			n *= 1000
		} else {
			n *= 1_000_000
		}
		return limitFlag.limit(m) >= n
	}
	return true
}
