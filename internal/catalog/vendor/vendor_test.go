package vendor

import "testing"

func TestLacksDeveloperRole(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]bool{
		"https://api.x.ai/v1": true, "https://us.api.x.ai/v1": true, "https://api.mistral.ai/v1": true, "https://api.deepseek.com": true,
		"https://api.together.ai/v1": true, "https://api.together.xyz/v1": true, "https://api.fireworks.ai/inference/v1": true,
		"https://api.cerebras.ai/v1": true, "https://api.moonshot.ai/v1": true, "https://api.moonshot.cn/v1": true,
		"https://api.z.ai/api/paas/v4": true, "https://open.bigmodel.cn/api/paas/v4": true, "https://API.Minimax.io./v1": true,
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1": true, "https://integrate.api.nvidia.com/v1": true,
		"https://api.openai.com/v1": false, "https://mine.openai.azure.com/openai/v1": false, "https://api.groq.com/openai/v1": false,
		"https://api.cohere.ai/compatibility/v1": false, "http://localhost:8000/v1": false, "https://matrix.ai/v1": false,
		"https://x.ai.example.com/v1": false, "%": false,
	} {
		if got := HostOf(base).LacksDeveloperRole("m"); got != want {
			t.Errorf("HostOf(%s).LacksDeveloperRole(m) = %t, want %t", base, got, want)
		}
	}
	for model, want := range map[string]bool{"openai/gpt-6-sol": false, "anthropic/claude-opus-5-5": false, "deepseek/deepseek-v4": true} {
		if got := HostOf("https://openrouter.ai/api/v1").LacksDeveloperRole(model); got != want {
			t.Errorf("LacksDeveloperRole(%s) of OpenRouter = %t, want %t", model, got, want)
		}
	}
}

func TestNoThinking(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"https://api.deepseek.com": "thinking", "https://api.moonshot.cn/v1": "thinking", "https://api.moonshot.ai/v1": "thinking",
		"https://dashscope.aliyuncs.com/compatible-mode/v1": "enable_thinking", "https://api.z.ai/api/paas/v4": "",
		"https://api.openai.com/v1": "", "http://localhost:8000/v1": "",
	} {
		if got := HostOf(base).NoThinking(); got.Name != want || (got.Value == "") != (want == "") {
			t.Errorf("HostOf(%s).NoThinking() = %v, want member %q", base, got, want)
		}
	}
}
