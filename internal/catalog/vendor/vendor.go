// Package vendor owns what is known of the vendors of lines beforehand, by the host
// of a line's base address. Invariants: of hosts that nobody knows nothing is
// assumed; all of it follows from the address and the host's id of a model alone.
package vendor

import (
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
)

// Host is the host of a line's base address. The zero value is one that nobody knows.
type Host string

// HostOf returns the host of a base address; the zero value for what is no address.
func HostOf(base string) Host {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return Host("." + strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

// ObeysBothLimits reports whether the host is OpenAI's or Azure's, which obey a
// limit on output tokens in either of its fields.
func (h Host) ObeysBothLimits() bool {
	return h.within("openai.com", "azure.com", "azure.us", "azure.cn")
}

// TakesNoStreamOptions reports whether the host refuses `stream_options`.
func (h Host) TakesNoStreamOptions() bool { return h.within("api.mistral.ai") }

// KnowsSystemOnly reports whether the host is one of those that know no role
// developer in chat completions, for a model by the host's own id.
func (h Host) KnowsSystemOnly(model string) bool {
	switch {
	case h.within("openrouter.ai"): // it hands the role on
		return !strings.HasPrefix(model, "openai/") && !strings.HasPrefix(model, "anthropic/")
	}
	return h.within(
		"x.ai", "mistral.ai", "deepseek.com", "together.ai", "together.xyz", "fireworks.ai", "cerebras.ai",
		"moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn", "aliyuncs.com", "minimax.io", "minimaxi.com", "nvidia.com",
		"sambanova.ai", "nebius.com", "huggingface.co", "volces.com", "bytepluses.com")
}

// NoThinking returns the member of a body of chat completions by which the
// host keeps a model that thinks from it; none where nobody knows one. Those hosts
// refuse a forced tool to a model that thinks. Zhipu refuses it to any model.
func (h Host) NoThinking() wire.Member {
	switch {
	case h.within("deepseek.com", "moonshot.ai", "moonshot.cn"):
		return wire.Member{Name: "thinking", Value: `{"type":"disabled"}`}
	case h.within("aliyuncs.com"):
		return wire.Member{Name: "enable_thinking", Value: "false"}
	}
	return wire.Member{}
}

// Vendor returns what the vendor of the host documents beyond the forms; nil if
// no known vendor has the host.
func (h Host) Vendor() *field.Vendor {
	return field.VendorOf(func(domain string) bool { return h.within(domain) })
}

// within tells whether the host is in one of the domains.
func (h Host) within(domains ...string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool {
		rest, ok := strings.CutSuffix(string(h), domain)
		return ok && strings.HasSuffix(rest, ".")
	})
}
