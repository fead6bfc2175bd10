package wire

import (
	"cmp"

	"tollgate/internal/wire/rawjson"
)

// Probe returns the smallest request of a form to test whether a model answers: one word in, few tokens out.
// A reasoning model gets a larger limit, because some reject a smaller one. limitField is the limit field of
// a chat line; empty means max_tokens. It returns false for a form without a probe.
func Probe(form Form, model string, reasoning bool, limitField string) ([]byte, bool) {
	name := string(rawjson.Quote(model))
	switch {
	case form == FormChat:
		limit := "1"
		if reasoning {
			limit = "16"
		}
		field := cmp.Or(limitField, "max_tokens")
		return []byte(`{"model":` + name + `,"messages":[{"role":"user","content":"ping"}],"` + field + `":` + limit + `}`), true
	case form == FormResponses:
		return []byte(`{"model":` + name + `,"input":"ping","max_output_tokens":16,"store":false}`), true
	case form == FormMessages:
		return []byte(`{"model":` + name + `,"messages":[{"role":"user","content":"ping"}],"max_tokens":1}`), true
	case form == FormGemini: // the model is in the URL
		limit := "1"
		if reasoning {
			limit = "16"
		}
		return []byte(`{"contents":[{"role":"user","parts":[{"text":"ping"}]}],"generationConfig":{"maxOutputTokens":` +
			limit + `,"responseModalities":["TEXT"]}}`), true
	case form == FormInteractions:
		return []byte(`{"model":` + name + `,"input":"ping","response_modalities":["text"],"generation_config":{"max_output_tokens":16},` +
			`"store":false}`), true
	}
	return nil, false
}

// ProbeTools adds a tool to the body of a chat probe, because a model may reject tools in this
// form. Bodies of other forms are unchanged.
func ProbeTools(form Form, body []byte) []byte {
	if form != FormChat {
		return body
	}
	return append(body[:len(body)-1:len(body)-1],
		`,"tools":[{"type":"function","function":{"name":"ping","parameters":{"type":"object","properties":{}}}}]}`...)
}
