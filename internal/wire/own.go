package wire

// LimitFields returns the vendors' names for the limit on output tokens. Vendors differ in the names they
// obey, so the gateway reads all of them and sends the smallest limit in one field.
func LimitFields() []string {
	return []string{
		"max_tokens", "max_completion_tokens", "max_output_tokens",
		"max_new_tokens", "max_tokens_to_sample", "n_predict", "num_predict", "tokens_to_generate",
	}
}

// OwnFields returns the top-level request fields of all forms and kinds that a line's settings cannot change,
// because the gateway sets them or they are the client's input.
func OwnFields() []string {
	return append(LimitFields(), "model", "stream", "messages", "input", "prompt", "contents", "system", "instructions",
		"systemInstruction", "system_instruction", "generationConfig", "generation_config", "n", "best_of", "instances", "parameters", "query",
		"documents")
}
