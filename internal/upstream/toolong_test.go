package upstream

import "testing"

// TestTooLong has the messages of providers about the length of a prompt, and others that look alike.
func TestTooLong(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		"prompt is too long: 205013 tokens > 200000 maximum":                                                 true,
		"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length": true,
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000.":   true,
		"Your input exceeds the context window of this model. Please adjust your input and try again.":       true,
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).":            true,
		"Input is too long for requested model.":                                                             true,
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.":               true,
		"Prompt contains 40000 tokens, too large for model with 32768 maximum context length":                true,
		"The decoder prompt (length 5000) is longer than the maximum model length of 4096.":                  true,
		"too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000.":      true,
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]":              true,
		"Invalid request: Your request exceeded model token limit: 8192":                                     true,
		"invalid params, context window exceeds limit":                                                       true,
		"Total tokens of image and text exceed max message tokens":                                           true,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 and 200":    true,
		"the request exceeds the available context size. try increasing the context size":                    true,
		"prompt token count of 131072 exceeds the limit of 128000":                                           true,
		"Please reduce the length of the messages or completion.":                                            true,
		"The number of tokens to keep from the initial prompt is greater than the context length.":           true,
		"The input (50000 tokens) is longer than the model's context length (32768 tokens).":                 true,
		"Input Tokens Exceeded: Number of input tokens exceeds maximum length.":                              true,
		"Prompt has too many tokens. Reduce it.":                                                             true,
		"the input token count is 40000 but model only supports up to 32768":                                 true,
		"length of prompt_tokens (40000) must be less than max_seq_len (32768).":                             true,
		"prompt too long; exceeded max context length by 4 tokens":                                           true,
		"prompt tokens too long": true,
		"the total number of tokens in the prompt exceeds the maximum":                                        true,
		"This request would exceed the maximum number of tokens for the context window: 33000 > 32768":        true,
		"输入内容过长,超过模型最大上下文长度":                                                                                  true,
		"Too many tokens, please wait before trying again.":                                                   false,
		"Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64":               false,
		"max_tokens is too large: 100000. This model supports at most 16384 completion tokens":                false,
		"The image is too large: the maximum length of a side is 8000 pixels":                                 false,
		"Rate limit reached for tokens per minute: Limit 30000, Requested 32000. Input is counted in advance": false,
	} {
		if got := isTooLong(notice{message: message}); got != want {
			t.Errorf("%q: too long is %v; want %v", message, got, want)
		}
	}
}
