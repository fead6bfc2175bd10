package wire

import (
	"cmp"

	"tollgate/internal/wire/rawjson"
)

// Probe is the smallest request of a form that shows whether a model answers:
// one word in, hardly a token out. reasoning models get room for a thought,
// which some of them demand. limitField is where a chat line reads its limit;
// empty: max_tokens. False: the form has none.
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
	case form == FormGemini: // the model stands in the address
		limit := "1"
		if reasoning {
			limit = "16"
		}
		return []byte(`{"contents":[{"role":"user","parts":[{"text":"ping"}]}],"generationConfig":{"maxOutputTokens":` +
			limit + `,"responseModalities":["TEXT"]}}`), true
	}
	return nil, false
}

// ProbeTools adds a tool to the body of a probe of the chat form: a model may take
// none there. Bodies of other forms stay as they are.
func ProbeTools(form Form, body []byte) []byte {
	if form != FormChat {
		return body
	}
	return append(body[:len(body)-1:len(body)-1],
		`,"tools":[{"type":"function","function":{"name":"ping","parameters":{"type":"object","properties":{}}}}]}`...)
}
