package wire

// LimitFields returns the names by which vendors take the limit on output tokens.
// Each obeys some of them and ignores the others, or lets one win, so all that a
// client sends are read, and the line gets the smallest in one field.
func LimitFields() []string {
	return []string{
		"max_tokens", "max_completion_tokens", "max_output_tokens",
		"max_new_tokens", "max_tokens_to_sample", "n_predict", "num_predict",
	}
}

// OwnFields returns the top-level fields of requests, of all forms, about which
// the gateway itself decides, or which are what the client asks: no line's
// settings can change them.
func OwnFields() []string {
	return append(LimitFields(), "model", "stream", "messages", "input", "prompt", "contents", "system", "instructions",
		"systemInstruction", "system_instruction", "generationConfig", "generation_config", "n", "best_of", "instances", "parameters")
}
