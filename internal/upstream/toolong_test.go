package upstream

import "testing"

// TestTooLong has the messages of providers about the length of a prompt, and others that look alike.
func TestTooLong(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		"prompt is too long: 205013 tokens > 200000 maximum":                                                  true,
		"input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length":  true,
		"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000.":    true,
		"Your input exceeds the context window of this model. Please adjust your input and try again.":        true,
		"The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).":             true,
		"Input is too long for requested model.":                                                              true,
		"This model's maximum prompt length is 131072 but the request contains 537812 tokens.":                true,
		"Prompt contains 40000 tokens, too large for model with 32768 maximum context length":                 true,
		"The decoder prompt (length 5000) is longer than the maximum model length of 4096.":                   true,
		"too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130000.":       true,
		"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]":               true,
		"Invalid request: Your request exceeded model token limit: 8192":                                      true,
		"invalid params, context window exceeds limit":                                                        true,
		"Total tokens of image and text exceed max message tokens":                                            true,
		"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 and 200":     true,
		"the request exceeds the available context size. try increasing the context size":                     true,
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
