package importer

import (
	"strings"

	"tollgate/internal/wire"
)

// vendorKind describes how a provider of LiteLLM becomes a line.
type vendorKind struct {
	provider string // empty if unsupported
	base     string // default address; empty for the provider's own or none
	key      string // environment variable of the credential, unless a model names another one
	forms    []wire.Form
	needs    bool // models must have a base address of their own
}

// compatibleVendor returns the kind for a vendor of OpenAI's chat completions.
func compatibleVendor(base, key string) vendorKind {
	return vendorKind{provider: "openai", base: base, key: key, forms: []wire.Form{wire.FormChat}}
}

// vendorKinds returns LiteLLM's providers by the prefix of a model.
func vendorKinds() map[string]vendorKind {
	openai := vendorKind{provider: "openai", key: "OPENAI_API_KEY"}
	own := compatibleVendor("", "")
	own.needs = true
	return map[string]vendorKind{
		"openai":       openai,
		"anthropic":    {provider: "anthropic", key: "ANTHROPIC_API_KEY"},
		"gemini":       {provider: "gemini", key: "GEMINI_API_KEY"},
		"azure":        {provider: "azure", key: "AZURE_API_KEY", forms: []wire.Form{wire.FormChat}, needs: true},
		"groq":         compatibleVendor("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
		"mistral":      compatibleVendor("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
		"deepseek":     compatibleVendor("https://api.deepseek.com", "DEEPSEEK_API_KEY"),
		"openrouter":   compatibleVendor("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
		"together_ai":  compatibleVendor("https://api.together.xyz/v1", "TOGETHERAI_API_KEY"),
		"fireworks_ai": compatibleVendor("https://api.fireworks.ai/inference/v1", "FIREWORKS_AI_API_KEY"),
		"xai":          compatibleVendor("https://api.x.ai/v1", "XAI_API_KEY"),
		"cerebras":     compatibleVendor("https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
		"moonshot":     compatibleVendor("https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
		"zai":          compatibleVendor("https://api.z.ai/api/paas/v4", "ZAI_API_KEY"),
		"nvidia_nim":   compatibleVendor("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
		"sambanova":    compatibleVendor("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
		"dashscope":    compatibleVendor("https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY"),
		"perplexity": {provider: "openai", base: "https://api.perplexity.ai/v1", key: "PERPLEXITYAI_API_KEY",
			forms: []wire.Form{wire.FormResponses}},
		"openai_like":   own,
		"custom_openai": own,
		"hosted_vllm":   own,
		"lm_studio":     own,
		"litellm_proxy": own,
	}
}

// splitModel splits a model of LiteLLM into its provider and the provider's own id.
func splitModel(model, provider, base string) (prefix, id string) {
	before, after, found := strings.Cut(model, "/")
	_, known := vendorKinds()[before]
	switch {
	case provider != "" && found && before == provider:
		return provider, after
	case provider != "":
		return provider, model
	case found && known:
		return before, after
	case found:
		return before, model
	}
	for begins, prefix := range map[string]string{"gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai",
		"claude-": "anthropic"} {
		if strings.HasPrefix(model, begins) {
			return prefix, model
		}
	}
	if base != "" {
		return "openai_like", model
	}
	return "", model
}
