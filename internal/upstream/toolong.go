package upstream

import (
	"net/http"
	"regexp"
	"slices"

	"tollgate/internal/fault"
)

// ContextLengthExceeded is the code of every rejection of a prompt longer than the model's context
// window, whatever the provider calls it. Coding agents shorten the conversation after this code.
const ContextLengthExceeded fault.Code = "context_length_exceeded"

// tooLongNames are providers' error names for a prompt that is too long, in lower case: of OpenAI and
// compatible providers, llama.cpp, GitHub, Copilot and Zhipu.
var tooLongNames = []string{string(ContextLengthExceeded), "exceed_context_size_error", "tokens_limit_reached",
	"model_max_prompt_tokens_exceeded", "1261"}

// tooLongWords matches the messages of providers without an error name for such a prompt.
var tooLongWords = regexp.MustCompile(`(?i)` +
	`\b(prompt|input|request|conversation)( tokens)?( is)? too long\b` + // Anthropic, Amazon, Fireworks, Ollama, Baidu
	`|max(imum)? (context|prompt|model) length` + // vLLM, DeepSeek, Mistral, OpenRouter, xAI, Ollama
	`|exceed(s|ed)? (the |its |available |model'?s? )*context (window|length|size|limit)` + // Anthropic, llama.cpp
	`|context (window|length) exceed` + // MiniMax
	`|maximum number of tokens for the context window` + // DeepInfra
	`|(longer|greater) than the (model's )?context length` + // SGLang, LM Studio
	`|(input|prompt) token count .{0,40}(exceeds|only supports)` + // Gemini, Vertex AI, Copilot
	`|input tokens exceed` + // Nova of Amazon
	`|range of input length` + // DashScope
	`|too many input tokens|prompt has too many tokens` + // Titan of Amazon, AI21
	`|reduce the length of the (messages|prompt|input)` + // Groq, Cerebras
	`|exceeded model token limit` + // Moonshot
	`|prompt exceeds max length|prompt 超长` + // Zhipu
	`|超过.{0,8}上下文` + // Hunyuan
	`|number of tokens in the prompt (cannot exceed|exceeds)` + // Cohere, StepFun
	`|exceeds? max message tokens` + // Ark
	`|must be less than max_seq_len` + // SiliconFlow
	`|tokens \+ \W?max_new_tokens`) // TGI, Together

// isTooLong reports whether a notice rejects a prompt longer than the model's context window.
func isTooLong(n notice) bool {
	return slices.ContainsFunc(n.signals, func(s string) bool { return slices.Contains(tooLongNames, s) }) ||
		tooLongWords.MatchString(n.message)
}

// tooLongStatus returns the client's status for a prompt that is too long. Some providers answer with a
// 200, 403 or 500.
func tooLongStatus(status int) int {
	if status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity {
		return status
	}
	return http.StatusBadRequest
}
