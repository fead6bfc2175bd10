package translate

import (
	"fmt"
	"testing"

	"tollgate/internal/wire/rawjson"
)

// TestOutputBeyondTheLimit checks the bound of the output: it includes predicted text and a budget of
// thinking, because a provider may bill them beside the limit. A budget without a number has no bound.
func TestOutputBeyondTheLimit(t *testing.T) {
	t.Parallel()
	const predicted = `{"type":"content","content":"1234"}`
	for member, want := range map[string]int64{
		``: 0, `,"thinking_budget":null`: 0, `,"thinking_budget":0`: 0, `,"thinking_budget":5000`: 5000,
		`,"thinking_budget":-1`: rawjson.MaxCount, `,"thinking_budget":"5000"`: rawjson.MaxCount, `,"thinking_budget":1e4`: rawjson.MaxCount,
		`,"thinking_budget":99999999999999`: rawjson.MaxCount, `,"thinking_budget":{}`: rawjson.MaxCount,
		`,"prediction":` + predicted: int64(len(predicted)), `,"prediction":"1234"`: 6, `,"prediction":null`: 0,
		`,"prediction":` + predicted + `,"thinking_budget":5`: int64(len(predicted)) + 5, `,"thinking_token_budget":7`: 0,
	} {
		for form, body := range plain {
			a, err := checkedParams(form, fmt.Sprintf(body, member))
			if err != nil || a.BeyondLimit != want {
				t.Errorf("%s with %s: %+v, %v; want %d", form, member, a, err, want)
			}
		}
	}
}
