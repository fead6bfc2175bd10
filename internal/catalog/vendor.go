package catalog

import (
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/wire"
)

// KnowsSystemOnly reports whether the line's host is one of those that know no
// role developer in chat completions, for a model by the host's own id. Of hosts
// that nobody knows it is not assumed.
func (l *Line) KnowsSystemOnly(model string) bool {
	switch {
	case isHostOf(l.BaseURL, "openrouter.ai"): // it hands the role on
		return !strings.HasPrefix(model, "openai/") && !strings.HasPrefix(model, "anthropic/")
	}
	return isHostOf(l.BaseURL,
		"x.ai", "mistral.ai", "deepseek.com", "together.ai", "together.xyz", "fireworks.ai", "cerebras.ai",
		"moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn", "aliyuncs.com", "minimax.io", "minimaxi.com", "nvidia.com",
		"sambanova.ai", "nebius.com", "huggingface.co", "volces.com", "bytepluses.com")
}

// NoThinking returns the member of a body of chat completions by which the line's
// host keeps a model that thinks from it; none where nobody knows one. Those hosts
// refuse a forced tool to a model that thinks. Zhipu refuses it to any model.
func (l *Line) NoThinking() wire.Member {
	switch {
	case isHostOf(l.BaseURL, "deepseek.com", "moonshot.ai", "moonshot.cn"):
		return wire.Member{Name: "thinking", Value: `{"type":"disabled"}`}
	case isHostOf(l.BaseURL, "aliyuncs.com"):
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
