package catalog

import (
	"errors"
	"testing"
)

// FuzzParse checks that no text makes Parse panic, that every fault has a path and a message, and
// that a valid document reads back from every printed format.
func FuzzParse(f *testing.F) {
	f.Add(example(f))
	f.Add(Sandbox())
	for _, text := range []string{
		"models: [" + chatModel + "]",
		lineYAML(`provider: sandbox, options: {a: 1.50, b: [true, "1", x], c: {d: -0}, e: 1e3}, error_sentences: ["a: b", "- #"]`),
		lineYAML(`provider: sandbox, limit_field: max_tokens, ignores_limit: true, pass: [models, route]`),
		mediaYAML("kind: video, per_clip: {720p: 0.1}, durations: {min: 1, max: 3}"),
		"a: &a {b: 1}\nc:\n  <<: *a\n  d: [*a]",
		`{"models":[{"id":"\ud83d\ude00"}]}`,
		`{"": 1, "models": []}`,
		"? a\n: b\n--- |\n  x\n...\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		doc, _, err := Parse(raw, testProviders())
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("error %v, want Faults", err)
			}
			for _, f := range faults {
				if f.Path == "" || f.Message == "" {
					t.Fatalf("fault %+v, want a path and a message", f)
				}
			}
			return
		}
		for name, text := range map[string][]byte{"YAML": doc.YAML(), "JSON": doc.JSON(), "canonical": doc.canonical()} {
			again, _, err := Parse(text, testProviders())
			if err != nil {
				t.Fatalf("Parse of the %s: error %v, want none\n%s", name, err, text)
			}
			if !Equal(doc, again) {
				t.Fatalf("%s reads back differently:\ngot  %s\nwant %s", name, again.canonical(), doc.canonical())
			}
		}
		stored, warnings, err := load(doc.canonical())
		if err != nil || len(warnings) > 0 || !Equal(doc, stored) {
			t.Fatalf("load returned another document, warnings %v, error %v", warnings, err)
		}
		if changes := Changes(doc, stored); len(changes) > 0 {
			t.Fatalf("Changes to the same document = %q, want none", changes)
		}
	})
}
