package hostile

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"tollgate/internal/gatewaytest/fakeprovider"
	"tollgate/internal/gatewaytest/scene"
)

// vendor is a chat provider with two lines. The gateway identifies it by its address.
type vendor struct {
	name, provider string
	base           string   // base_url of the lines, without the port
	forms          []string // of its lines
	also           string   // further hosts whose errors are the vendor's, separated by blanks
}

// vendors returns a vendor for every chat adapter, and the compatible vendors that the gateway
// knows by host.
func vendors() []vendor {
	chat, responses, both := []string{"chat"}, []string{"responses"}, []string{"chat", "responses"}
	messages, google := []string{"messages"}, []string{"gemini"}
	return []vendor{
		{name: "openai", provider: "openai", base: "http://api.openai.com/v1", forms: both},
		{name: "xai", provider: "openai", base: "http://api.x.ai/v1", forms: both, also: "us.api.x.ai"},
		{name: "groq", provider: "openai", base: "http://api.groq.com/openai/v1", forms: chat},
		{name: "mistral", provider: "openai", base: "http://api.mistral.ai/v1", forms: chat},
		{name: "deepseek", provider: "openai", base: "http://api.deepseek.com", forms: chat},
		{name: "openrouter", provider: "openai", base: "http://openrouter.ai/api/v1", forms: both},
		{name: "together", provider: "openai", base: "http://api.together.ai/v1", forms: chat},
		{name: "fireworks", provider: "openai", base: "http://api.fireworks.ai/inference/v1", forms: chat, also: "us.api.fireworks.ai"},
		{name: "cerebras", provider: "openai", base: "http://api.cerebras.ai/v1", forms: chat},
		{name: "perplexity", provider: "openai", base: "http://api.perplexity.ai/v1", forms: responses},
		{name: "moonshot", provider: "openai", base: "http://api.moonshot.ai/v1", forms: chat},
		{name: "zhipu", provider: "openai", base: "http://api.z.ai/api/paas/v4", forms: chat, also: "open.bigmodel.cn"},
		{name: "zhipu-messages", provider: "anthropic", base: "http://api.z.ai/api/anthropic", forms: messages},
		{name: "qwen", provider: "openai", base: "http://dashscope-intl.aliyuncs.com/compatible-mode/v1", forms: both,
			also: "dashscope.aliyuncs.com"},
		{name: "minimax", provider: "openai", base: "http://api.minimax.io/v1", forms: chat, also: "api.minimaxi.com"},
		{name: "minimax-messages", provider: "anthropic", base: "http://api.minimax.io/anthropic", forms: messages},
		{name: "cohere", provider: "openai", base: "http://api.cohere.ai/compatibility/v1", forms: chat},
		{name: "nvidia", provider: "openai", base: "http://integrate.api.nvidia.com/v1", forms: chat},
		{name: "sambanova", provider: "openai", base: "http://api.sambanova.ai/v1", forms: chat},
		{name: "ark", provider: "openai", base: "http://ark.ap-southeast.bytepluses.com/api/v3", forms: both},
		{name: "own", provider: "openai", base: "http://llm.internal/v1", forms: chat, also: "10.0.0.7"},
		{name: "relay", provider: "openai", base: "http://relay.example/v1", forms: both},
		{name: "anthropic", provider: "anthropic", base: "http://api.anthropic.com", forms: messages},
		{name: "gemini", provider: "gemini", base: "http://generativelanguage.googleapis.com/v1beta", forms: google,
			also: "aiplatform.googleapis.com us-central1-aiplatform.googleapis.com"},
		{name: "vertex", provider: "vertex", base: "http://aiplatform.googleapis.com/v1", forms: google,
			also: "us-central1-aiplatform.googleapis.com"},
		{name: "vertex-claude", provider: "vertex", base: "http://us-east5-aiplatform.googleapis.com/v1", forms: messages,
			also: "aiplatform.googleapis.com"},
		{name: "azure", provider: "azure", base: "http://our.openai.azure.com/openai/v1", forms: both, also: "our.services.ai.azure.com"},
		{name: "foundry-claude", provider: "azure", base: "http://our.services.ai.azure.com/anthropic", forms: messages},
		{name: "bedrock", provider: "bedrock", base: "http://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", forms: both},
		{name: "bedrock-claude", provider: "bedrock", base: "http://bedrock-runtime.us-east-1.amazonaws.com/anthropic", forms: messages},
	}
}

// sends reports whether an error from an address is an error of the vendor.
func (v vendor) sends(t testing.TB, from string) bool {
	t.Helper()
	at, err := url.Parse(from)
	own, ownErr := url.Parse(v.base)
	if err != nil || ownErr != nil {
		t.Fatal(err, ownErr)
	}
	if host := at.Hostname(); host != own.Hostname() && !slices.Contains(strings.Fields(v.also), host) {
		return false
	}
	// Errors of the two forms on one host are different.
	return strings.Contains(at.Path, "anthropic") == strings.Contains(own.Path, "anthropic")
}

// lines returns the vendor's two lines of equal priority, each with a fake provider.
func (v vendor) lines(t testing.TB, reply func(fakeprovider.Request) fakeprovider.Reply) (lines []map[string]any) {
	for _, id := range v.ids() {
		p := fakeprovider.New(t)
		p.Always(reply)
		at, err := url.Parse(v.base)
		if err != nil {
			t.Fatal(err)
		}
		fake, err := url.Parse(p.URL())
		if err != nil {
			t.Fatal(err)
		}
		at.Host += ":" + fake.Port()
		lines = append(lines, scene.ChatLine(id, at.String(), map[string]any{"provider": v.provider, "forms": v.forms}, v.name))
	}
	return lines
}

// ids returns the ids of the vendor's lines.
func (v vendor) ids() []string { return []string{v.name + "-1", v.name + "-2"} }

// formAt returns the form of a request, according to its path.
func formAt(q fakeprovider.Request) string {
	switch {
	case strings.HasSuffix(q.Path, "/responses"):
		return "responses"
	case strings.HasSuffix(q.Path, "/messages"), strings.HasSuffix(q.Path, "awPredict"):
		return "messages"
	case strings.HasSuffix(q.Path, "enerateContent"):
		return "gemini"
	}
	return "chat"
}
