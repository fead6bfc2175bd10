// Package vendor owns facts about well-known vendors, identified by the host of a line's base
// address. Invariants: nothing is assumed about unknown hosts, and all facts follow from the
// address and the host's ID of a model.
package vendor

import (
	"net/url"
	"slices"
	"strings"

	"tollgate/internal/wire"
	"tollgate/internal/wire/field"
)

// Host is the host of a line's base address. The zero value is an unknown host.
type Host string

// HostOf returns the host of a base address, or the zero value for an invalid address.
func HostOf(base string) Host {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return Host("." + strings.TrimSuffix(strings.ToLower(u.Hostname()), "."))
}

// AcceptsBothLimits reports whether the host accepts a limit on output tokens in either field of
// chat completions. OpenAI and Azure do.
func (h Host) AcceptsBothLimits() bool {
	return h.isWithin("openai.com", "azure.com", "azure.us", "azure.cn")
}

// RejectsStreamOptions reports whether the host rejects `stream_options`.
func (h Host) RejectsStreamOptions() bool { return h.isWithin("api.mistral.ai") }

// LacksDeveloperRole reports whether chat completions on the host have no developer role for a
// model. model is the host's ID.
func (h Host) LacksDeveloperRole(model string) bool {
	if h.isWithin("openrouter.ai") { // passes the role on to the vendor
		return !strings.HasPrefix(model, "openai/") && !strings.HasPrefix(model, "anthropic/")
	}
	return h.isWithin(
		"x.ai", "mistral.ai", "deepseek.com", "together.ai", "together.xyz", "fireworks.ai", "cerebras.ai",
		"moonshot.ai", "moonshot.cn", "z.ai", "bigmodel.cn", "aliyuncs.com", "minimax.io", "minimaxi.com", "nvidia.com",
		"sambanova.ai", "nebius.com", "huggingface.co", "volces.com", "bytepluses.com")
}

// NoThinking returns the member of a chat completions body that turns off thinking on the host, or
// the zero value if unknown. These hosts reject a forced tool while a model thinks. Zhipu is not
// among them, because it rejects a forced tool for any model.
func (h Host) NoThinking() wire.Member {
	switch {
	case h.isWithin("deepseek.com", "moonshot.ai", "moonshot.cn"):
		return wire.Member{Name: "thinking", Value: `{"type":"disabled"}`}
	case h.isWithin("aliyuncs.com"):
		return wire.Member{Name: "enable_thinking", Value: "false"}
	}
	return wire.Member{}
}

// NeedsReasoning reports whether the host's thinking models reject a tool call without the reasoning
// before the call, if the call is after the last user message. They accept a blank reasoning text.
func (h Host) NeedsReasoning() bool { return h.isWithin("deepseek.com", "moonshot.ai", "moonshot.cn") }

// SignsThinking reports whether the host serves Claude's models, under whatever name. They reject
// thinking without their signature.
func (h Host) SignsThinking() bool {
	return h.isWithin("anthropic.com", "claude.com", "amazonaws.com", "googleapis.com", "azure.com", "azure.us", "azure.cn")
}

// Vendor returns the fields documented by the host's vendor beyond the forms, or nil for an unknown
// vendor.
func (h Host) Vendor() *field.Vendor {
	return field.VendorOf(func(domain string) bool { return h.isWithin(domain) })
}

// isWithin reports whether the host is in one of the domains.
func (h Host) isWithin(domains ...string) bool {
	return slices.ContainsFunc(domains, func(domain string) bool {
		rest, ok := strings.CutSuffix(string(h), domain)
		return ok && strings.HasSuffix(rest, ".")
	})
}
