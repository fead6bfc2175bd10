// Package vendor owns what is known of the vendors of lines beforehand, by the host
// of a line's base address. Invariants: of hosts that nobody knows nothing is
// assumed; all of it follows from the address and the host's id of a model alone.
package vendor

import (
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/wire"
)

// ObeysBothLimits reports whether the host is OpenAI's or Azure's, which obey a
// limit on output tokens in either of its fields.
func ObeysBothLimits(base string) bool {
	return isHostOf(base, "openai.com", "azure.com", "azure.us", "azure.cn")
}

// TakesNoStreamOptions reports whether the host refuses `stream_options`.
func TakesNoStreamOptions(base string) bool { return isHostOf(base, "api.mistral.ai") }

// KnowsSystemOnly reports whether the host is one of those that know no role
// developer in chat completions, for a model by the host's own id.
func KnowsSystemOnly(base, model string) bool {
	switch {
	case isHostOf(base, "openrouter.ai"): // it hands the role on
		return !strings.HasPrefix(model, "openai/") && !strings.HasPrefix(model, "anthropic/")
	}
	return isHostOf(base,
		"x.ai", "mistral.ai", "deepseek.com", "together.ai", "together.xyz", "fireworks.ai", "cerebras.ai",
		"moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn", "aliyuncs.com", "minimax.io", "minimaxi.com", "nvidia.com",
		"sambanova.ai", "nebius.com", "huggingface.co", "volces.com", "bytepluses.com")
}

// NoThinking returns the member of a body of chat completions by which the
// host keeps a model that thinks from it; none where nobody knows one. Those hosts
// refuse a forced tool to a model that thinks. Zhipu refuses it to any model.
func NoThinking(base string) wire.Member {
	switch {
	case isHostOf(base, "deepseek.com", "moonshot.ai", "moonshot.cn"):
		return wire.Member{Name: "thinking", Value: `{"type":"disabled"}`}
	case isHostOf(base, "aliyuncs.com"):
		return wire.Member{Name: "enable_thinking", Value: "false"}
	}
	return wire.Member{}
}

// isHostOf tells whether a base address is within one of the domains.
func isHostOf(base string, domains ...string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := "." + strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return slices.ContainsFunc(domains, func(domain string) bool { return strings.HasSuffix(host, "."+domain) })
}
