package importer

import (
	"maps"
	"strings"

	"tollgate/internal/wire"
)

// channelKind describes the line for a type of channel: the provider, the default address, and the
// end of every address.
type channelKind struct {
	name     string
	provider string // empty if unsupported
	base     string // if empty, a channel must have its own address
	suffix   string
	forms    []wire.Form // nil for all forms of the provider
	bare     bool        // a channel without an address uses the provider's default address
	ignores  bool        // the provider ignores limits on tokens
}

// compatible returns the kind for a vendor of OpenAI's chat completions.
func compatible(name, base, suffix string) channelKind {
	return channelKind{name: name, provider: "openai", base: base, suffix: suffix, forms: []wire.Form{wire.FormChat}}
}

// unsupported returns the kind for a type without a provider in the gateway, or with a credential
// in another format.
func unsupported(name string) channelKind { return channelKind{name: name} }

// sharedKinds returns the types with the same number in both programs.
func sharedKinds() map[int64]channelKind {
	return map[int64]channelKind{
		1:  {name: "OpenAI", provider: "openai", suffix: "/v1", bare: true},
		2:  compatible("API2D", "https://oa.api2d.net", "/v1"),
		3:  {name: "Azure OpenAI", provider: "azure", forms: []wire.Form{wire.FormChat}},
		5:  compatible("OpenAI-SB", "https://api.openai-sb.com", "/v1"),
		6:  compatible("OpenAI Max", "https://api.openaimax.com", "/v1"),
		7:  compatible("OhMyGPT", "https://api.ohmygpt.com", "/v1"),
		8:  compatible("custom", "", "/v1"),
		9:  compatible("Ails", "https://api.caipacity.com", "/v1"),
		10: compatible("AI Proxy", "https://api.aiproxy.io", "/v1"),
		11: unsupported("PaLM"),
		12: compatible("API2GPT", "https://api.api2gpt.com", "/v1"),
		13: compatible("AIGC2D", "https://api.aigc2d.com", "/v1"),
		14: {name: "Anthropic", provider: "anthropic", bare: true},
		15: unsupported("Baidu"),
		18: unsupported("Xunfei"),
		19: compatible("360", "https://api.360.cn", "/v1"),
		20: compatible("OpenRouter", "https://openrouter.ai/api", "/v1"),
		21: unsupported("AI Proxy library"),
		22: compatible("FastGPT", "https://fastgpt.run/api/openapi", "/v1"),
		23: unsupported("Tencent"),
		24: {name: "Gemini", provider: "gemini", suffix: "/v1beta", bare: true},
		25: compatible("Moonshot", "https://api.moonshot.cn", "/v1"),
		31: compatible("01.AI", "https://api.lingyiwanwu.com", "/v1"),
		33: unsupported("AWS"),
	}
}

// ali returns the kind for Alibaba, whose token limit does not include the reasoning.
func ali(base string) channelKind {
	kind := compatible("Alibaba", base, "/compatible-mode/v1")
	kind.ignores = true
	return kind
}

// kindsOf returns the types of channels of a program.
func kindsOf(p Program) map[int64]channelKind {
	kinds := sharedKinds()
	own := oneAPIKinds()
	if p == NewAPI {
		own = newAPIKinds()
	}
	maps.Copy(kinds, own)
	return kinds
}

// oneAPIKinds returns one-api's own types of channels by number.
func oneAPIKinds() map[int64]channelKind {
	return map[int64]channelKind{
		4:  compatible("CloseAI", "https://api.closeai-proxy.xyz", "/v1"),
		16: compatible("Zhipu", "https://open.bigmodel.cn", "/api/paas/v4"),
		17: ali("https://dashscope.aliyuncs.com"),
		19: compatible("360", "https://ai.360.cn", "/v1"),
		26: compatible("Baichuan", "https://api.baichuan-ai.com", "/v1"),
		27: compatible("MiniMax", "https://api.minimax.chat", "/v1"),
		28: compatible("Mistral", "https://api.mistral.ai", "/v1"),
		29: compatible("Groq", "https://api.groq.com/openai", "/v1"),
		30: compatible("Ollama", "http://localhost:11434", "/v1"),
		32: compatible("StepFun", "https://api.stepfun.com", "/v1"),
		34: unsupported("Coze"),
		35: compatible("Cohere", "https://api.cohere.ai", "/compatibility/v1"),
		36: compatible("DeepSeek", "https://api.deepseek.com", "/v1"),
		37: unsupported("Cloudflare"),
		38: unsupported("DeepL"),
		39: compatible("Together", "https://api.together.xyz", "/v1"),
		40: compatible("Doubao", "https://ark.cn-beijing.volces.com", "/api/v3"),
		41: compatible("Novita", "https://api.novita.ai/v3/openai", ""),
		42: unsupported("Vertex AI"),
		43: unsupported("proxy"),
		44: compatible("SiliconFlow", "https://api.siliconflow.cn", "/v1"),
		45: compatible("xAI", "https://api.x.ai", "/v1"),
		46: unsupported("Replicate"),
		47: compatible("Baidu V2", "https://qianfan.baidubce.com", "/v2"),
		48: compatible("Xunfei V2", "https://spark-api-open.xf-yun.com", "/v1"),
		49: ali("https://dashscope.aliyuncs.com"),
		50: compatible("OpenAI-compatible", "", ""),
		51: compatible("Gemini, OpenAI-compatible", "https://generativelanguage.googleapis.com/v1beta/openai", ""),
	}
}

// newAPIKinds returns new-api's own types of channels by number.
func newAPIKinds() map[int64]channelKind {
	return map[int64]channelKind{
		2:  unsupported("Midjourney"),
		4:  compatible("Ollama", "http://localhost:11434", "/v1"),
		5:  unsupported("Midjourney Plus"),
		16: unsupported("Zhipu"),
		17: ali("https://dashscope.aliyuncs.com"),
		26: compatible("Zhipu V4", "https://open.bigmodel.cn", "/api/paas/v4"),
		27: {name: "Perplexity", provider: "openai", base: "https://api.perplexity.ai", suffix: "/v1", forms: []wire.Form{wire.FormResponses}},
		34: compatible("Cohere", "https://api.cohere.ai", "/compatibility/v1"),
		35: compatible("MiniMax", "https://api.minimax.chat", "/v1"),
		36: unsupported("Suno"),
		37: unsupported("Dify"),
		38: unsupported("Jina"),
		39: unsupported("Cloudflare"),
		40: compatible("SiliconFlow", "https://api.siliconflow.cn", "/v1"),
		41: unsupported("Vertex AI"),
		42: compatible("Mistral", "https://api.mistral.ai", "/v1"),
		43: compatible("DeepSeek", "https://api.deepseek.com", "/v1"),
		44: unsupported("Moka"),
		45: compatible("Volcengine", "https://ark.cn-beijing.volces.com", "/api/v3"),
		46: compatible("Baidu V2", "https://qianfan.baidubce.com", "/v2"),
		47: compatible("Xinference", "", "/v1"),
		48: compatible("xAI", "https://api.x.ai", "/v1"),
		49: unsupported("Coze"),
		50: unsupported("Kling"),
		51: unsupported("Jimeng"),
		52: unsupported("Vidu"),
		53: compatible("Submodel", "https://llm.submodel.ai", "/v1"),
		54: unsupported("Doubao video"),
		55: unsupported("Sora"),
		56: unsupported("Replicate"),
		57: unsupported("Codex"),
	}
}

// address returns the base address of a line, empty for the provider's own. It returns false if an
// address is required and missing.
func (k channelKind) address(own string) (string, bool) {
	own = strings.TrimRight(strings.TrimSpace(own), "/")
	switch {
	case own == "" && k.bare:
		return "", true
	case own == "" && k.base == "":
		return "", false
	case own == "":
		own = k.base
	}
	if k.suffix != "" && strings.HasSuffix(own, k.suffix) {
		return own, true
	}
	return own + k.suffix, true
}
