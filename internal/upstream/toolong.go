package upstream

import (
	"regexp"
	"slices"

	"tollgate/internal/fault"
)

// ContextLengthExceeded is the code of every rejection of a prompt longer than the model's context
// window, whatever the provider calls it. Coding agents shorten the conversation when they read it.
const ContextLengthExceeded fault.Code = "context_length_exceeded"

// tooLongNames are the error names of providers for such a prompt, in lower case: OpenAI's and its
// followers', llama.cpp's and Zhipu's.
var tooLongNames = []string{string(ContextLengthExceeded), "exceed_context_size_error", "1261"}

// tooLongWords match the messages of providers without such a name.
var tooLongWords = regexp.MustCompile(`(?i)` +
	`\b(prompt|input|request|conversation) is too long\b` + // Anthropic, Amazon, Fireworks
	`|maximum (context|prompt|model) length` + // vLLM, DeepSeek, Mistral, OpenRouter, xAI
	`|exceeds? (the |its |available )*context (window|length|size|limit)` + // Anthropic, llama.cpp
	`|context (window|length) exceeds` + // MiniMax
	`|input token count .{0,40}exceeds` + // Gemini
	`|range of input length` + // DashScope
	`|too many input tokens` + // Titan of Amazon
	`|exceeded model token limit` + // Moonshot
	`|prompt exceeds max length` + // Zhipu
	`|number of tokens in the prompt cannot exceed` + // Cohere
	`|exceeds? max message tokens` + // Ark
	`|tokens \+ \W?max_new_tokens`) // TGI, Together

// isTooLong reports whether a notice rejects a prompt longer than the model's context window.
func isTooLong(n notice) bool {
	return slices.ContainsFunc(n.signals, func(s string) bool { return slices.Contains(tooLongNames, s) }) ||
		tooLongWords.MatchString(n.message)
}
