package translate

import (
	"fmt"
	"strings"
	"testing"
	"tollgate/internal/wire/translate/internal/pairtest"
)

// TestChatToolNames expects distinct names for the functions replacing tools of namespaces
// accepted by providers.
func TestChatToolNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 70)
	for tools, want := range map[string]string{
		`{"type":"namespace","name":"a b","tools":[{"type":"function",` +
			`"name":"ü"}]}`: "a_b____",
		`{"type":"namespace","name":"` + long +
			`","tools":[{"type":"function","name":"x"},{"type":"custom","name":"y"}]}`: long[:64] + " " + long[:62] + "_2",
		`{"type":"namespace","name":"a","tools":[{"type":"function","name":"x"}]},` +
			`{"type":"function","name":"a__x"}`: "a__x_2 a__x",
		`{"type":"namespace","name":"a","tools":[{"type":"function","name":"x"},` +
			`{"type":"function","name":"x"}]}`: "a__x a__x",
		`{"type":"namespace","name":"a__b","tools":[{"type":"function","name":"x"}]},` +
			`{"type":"namespace","name":"a","tools":[{"type":"function","name":"b__x"}]}`: "a__b__x a__b__x_2",
	} {
		r := pairtest.Responses(t, `{"model":"m","input":"x","tools":[`+tools+`]}`)
		found, err := r.Decode()
		if err != nil {
			t.Fatalf("%s: %v", tools, err)
		}
		found.NameTools()
		var names []string
		for _, tool := range found.Tools {
			names = append(names, tool.Line)
			if got := found.NameOnLine(tool.Name, tool.Namespace); got != tool.Line {
				t.Errorf("%s: the tool %s is called as %s", tools, tool.Line, got)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", tools, got, want)
		}
	}
}

// TestChatToolNamesAreFoundQuickly expects the search for tool names not to be quadratic. A
// quadratic search would exceed the test's deadline.
func TestChatToolNamesAreFoundQuickly(t *testing.T) {
	t.Parallel()
	var tools strings.Builder
	long := strings.Repeat("n", 60)
	for i := range 50_000 {
		fmt.Fprintf(&tools, `{"type":"function","name":"%s"},`, (long + "__")[:62])
		fmt.Fprintf(&tools, `{"type":"namespace","name":"%s","tools":[{"type":"function","name":"%d"}]},`, long, i)
	}
	r := pairtest.Responses(t, `{"model":"m","input":"x","tools":[`+strings.TrimSuffix(tools.String(), ",")+`]}`)
	found, err := r.Decode()
	if err != nil || len(found.Tools) != 100_000 {
		t.Fatalf("%d tools, %v", len(found.Tools), err)
	}
	found.NameTools()
}
