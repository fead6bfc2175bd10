package wire

// Probe is the smallest request of a form that shows whether a model answers:
// one word in, hardly a token out. reasoning models get room for a thought,
// which some of them demand. False: the form has none.
func Probe(form Form, model string, reasoning bool) ([]byte, bool) {
	name := string(quote(model))
	switch {
	case form == FormChat && reasoning:
		return []byte(`{"model":` + name + `,"messages":[{"role":"user","content":"ping"}],"max_completion_tokens":16}`), true
	case form == FormChat:
		return []byte(`{"model":` + name + `,"messages":[{"role":"user","content":"ping"}],"max_tokens":1}`), true
	case form == FormResponses:
		return []byte(`{"model":` + name + `,"input":"ping","max_output_tokens":16,"store":false}`), true
	case form == FormMessages:
		return []byte(`{"model":` + name + `,"messages":[{"role":"user","content":"ping"}],"max_tokens":1}`), true
	case form == FormGemini: // the model stands in the address
		limit := "1"
		if reasoning {
			limit = "16"
		}
		return []byte(`{"contents":[{"role":"user","parts":[{"text":"ping"}]}],"generationConfig":{"maxOutputTokens":` + limit + `}}`), true
	}
	return nil, false
}
