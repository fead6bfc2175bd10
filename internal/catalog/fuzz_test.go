package catalog

import (
	"errors"
	"testing"
)

// FuzzParse tests that no text makes the reader panic, every fault has a path and a message, and a
// valid document prints and reads back to the same document in every form.
func FuzzParse(f *testing.F) {
	f.Add(example(f))
	f.Add(Sandbox())
	for _, text := range []string{
		"models: [" + chatModel + "]",
		onLine(`provider: sandbox, options: {a: 1.50, b: [true, "1", x], c: {d: -0}, e: 1e3}, error_sentences: ["a: b", "- #"]`),
		onLine(`provider: sandbox, limit_field: max_tokens, ignores_limit: true, pass: [models, route]`),
		media("kind: video, per_clip: {720p: 0.1}, durations: {min: 1, max: 3}"),
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
				t.Fatalf("not faults: %v", err)
			}
			for _, f := range faults {
				if f.Path == "" || f.Message == "" {
					t.Fatalf("a fault without path or message: %+v", f)
				}
			}
			return
		}
		for name, text := range map[string][]byte{"YAML": doc.YAML(), "JSON": doc.JSON(), "canonical": doc.canonical()} {
			again, _, err := Parse(text, testProviders())
			if err != nil {
				t.Fatalf("%s does not read back: %v\n%s", name, err, text)
			}
			if !Equal(doc, again) {
				t.Fatalf("%s reads back differently:\n%s\n%s", name, doc.canonical(), again.canonical())
			}
		}
		stored, left, err := load(doc.canonical())
		if err != nil || len(left) > 0 || !Equal(doc, stored) {
			t.Fatalf("the stored form loads differently: %v %v", err, left)
		}
		if changes := Changes(doc, stored); len(changes) > 0 {
			t.Fatalf("changes to itself: %q", changes)
		}
	})
}
