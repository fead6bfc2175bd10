package catalog

import (
	"slices"
	"strings"
	"testing"
)

// TestChanges checks the lines for changes of values, lists and entries.
func TestChanges(t *testing.T) {
	t.Parallel()
	base := string(example(t))
	for name, tt := range map[string]struct {
		edits []string // old, new, old, new ...
		want  []string
	}{
		"no change":      {nil, []string{}},
		"other notation": {[]string{"output: 2.00", "output: 2", "    priority: 1\n", ""}, []string{}},
		"a price":        {[]string{"input: 0.25\n", "input: 0.30\n"}, []string{"model lark-1: price.input 0.25 -> 0.3"}},
		"a price above":  {[]string{"output: 3.00", "output: 4"}, []string{"model lark-1: price.above[0].output 3 -> 4"}},
		"from a default": {[]string{"weight: 100", "weight: 50"}, []string{"line main: weight (default) -> 50"}},
		"to a default":   {[]string{"    max_concurrent: 200\n", ""}, []string{"line main: max_concurrent 200 -> (default)"}},
		"a factor":       {[]string{"flex: 0.5", "flex: 0.6"}, []string{"model lark-1: price.options.service_tier.flex 0.5 -> 0.6"}},
		"a list":         {[]string{"params: [seed, style]", "params: [seed]"}, []string{"model brush-1: params [seed, style] -> [seed]"}},
		"params of video": {[]string{"params: [seed, camera_fixed]", "params: [camera_fixed]"},
			[]string{"model clip-1: params [seed, camera_fixed] -> [camera_fixed]"}},
		"a credential": {[]string{"${EXAMPLE_API_KEY}", "${OTHER_KEY}"}, []string{"line main: api_key ${EXAMPLE_API_KEY} -> ${OTHER_KEY}"}},
		"another sentence": {[]string{`["^service overloaded"]`, `["^service overloaded", "x"]`},
			[]string{"line main: error_sentences[1] (default) -> x"}},
		"new ID": {[]string{"brush-1", "brush-2"}, []string{"model brush-1: removed", "model brush-2: added"}},
		"two changes": {[]string{"[5, 10]", "[5]", "enabled: true", "enabled: false"},
			[]string{"model clip-1: durations [5, 10] -> [5]", "line main: enabled (default) -> false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			edited := base
			for i := 0; i < len(tt.edits); i += 2 {
				if !strings.Contains(edited, tt.edits[i]) {
					t.Fatalf("the example has no %q", tt.edits[i])
				}
				edited = strings.Replace(edited, tt.edits[i], tt.edits[i+1], 1)
			}
			before, after := mustParse(t, base), mustParse(t, edited)
			if got := Changes(before, after); !slices.Equal(got, tt.want) || got == nil {
				t.Errorf("got changes %q, want %q", got, tt.want)
			}
			if Equal(before, after) != (len(tt.want) == 0) {
				t.Errorf("Equal = %v, but the changes are %q", Equal(before, after), tt.want)
			}
		})
	}
}

// TestChangesOfOrder checks the lines for a changed order and for a first catalog.
func TestChangesOfOrder(t *testing.T) {
	t.Parallel()
	one, two := chatModel, strings.Replace(chatModel, "id: a", "id: b", 1)
	before, after := mustParse(t, "models: ["+one+", "+two+"]"), mustParse(t, "models: ["+two+", "+one+"]")
	if got := Changes(before, after); !slices.Equal(got, []string{"models: order changed"}) {
		t.Errorf("changes of the order = %q, want one line", got)
	}
	if got := Changes(nil, before); !slices.Equal(got, []string{"model a: added", "model b: added"}) {
		t.Errorf("changes from no catalog = %q, want both models added", got)
	}
}
