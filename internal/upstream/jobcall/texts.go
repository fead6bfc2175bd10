package jobcall

import (
	"encoding/json"

	"tollgate/internal/wire/rawjson"
)

// Texts returns the prompt and the params of a task as one JSON text, for upstream.Failure.Conceal.
func (w Task) Texts() rawjson.Pieces {
	if len(w.Params) == 0 {
		w.Params = nil // encoded as null
	}
	texts, err := json.Marshal([]any{w.Prompt, w.Params, w.further})
	if err != nil { // the params are not JSON
		texts, _ = json.Marshal([]string{w.Prompt, string(w.Params)})
	}
	return rawjson.Pieces{texts}
}
