package piece

import (
	"fmt"

	"tollgate/internal/wire"
)

// AppendMessagesUsage appends a usage object of the messages form. Its input tokens exclude tokens
// read from or written to a cache.
func AppendMessagesUsage(dst []byte, u wire.Usage) []byte {
	written := u.CacheWrite + u.CacheWrite1h
	dst = fmt.Appendf(dst, `{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d`,
		max(u.Prompt-u.Cached-written, 0), written, u.Cached, u.Completion)
	if u.Reasoning > 0 {
		dst = fmt.Appendf(dst, `,"output_tokens_details":{"thinking_tokens":%d}`, u.Reasoning)
	}
	return append(dst, '}')
}

// AppendChatUsage appends a usage object of the chat form with the tokens written to the provider's
// cache, which have a price of their own.
func AppendChatUsage(dst []byte, u wire.Usage) []byte {
	return fmt.Appendf(dst, `{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d},"completion_tokens_details":{"reasoning_tokens":%d}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached, u.CacheWrite+u.CacheWrite1h, u.Reasoning)
}
