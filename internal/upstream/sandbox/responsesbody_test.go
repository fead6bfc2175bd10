package sandbox

import (
	"testing"

	"github.com/tidwall/gjson"
)

// TestEchoedTools checks that a response repeats a function with all of its fields, including those
// left out of the request.
func TestEchoedTools(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		``:                                 `[]`,
		`"none"`:                           `[]`,
		`[]`:                               `[]`,
		`[{"type":"custom","name":"c"},1]`: `[{"type":"custom","name":"c"}]`,
		`[{"type":"function","name":"f"}]`: `[{"type":"function","name":"f","description":null,"parameters":null,"strict":true}]`,
		`[{"type":"function","name":"f","strict":false,"description":"d",` +
			`"parameters":{}} ]`: `[{"type":"function","name":"f","strict":false,"description":"d","parameters":{}}]`,
	} {
		if got := string(echoTools(gjson.Parse(sent))); got != want {
			t.Errorf("%s: %s, want %s", sent, got, want)
		}
	}
}
