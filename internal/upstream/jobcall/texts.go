package jobcall

import (
	"encoding/json"

	"tollgate/internal/wire/rawjson"
)

// Texts returns the prompt and the params of a task as one JSON text, for upstream.Failure.Conceal.
func (task Task) Texts() rawjson.Pieces {
	if len(task.Params) == 0 {
		task.Params = nil // encoded as null
	}
	texts, err := json.Marshal([]any{task.Prompt, task.Params, task.extra})
	if err != nil { // the params are not JSON
		texts, _ = json.Marshal([]string{task.Prompt, string(task.Params)})
	}
	return rawjson.Pieces{texts}
}
