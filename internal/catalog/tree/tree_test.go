package tree

import (
	"cmp"
	"testing"
)

// TestYAMLAndJSONAreSameTree checks that equal YAML and JSON documents are the same tree, and that
// a printed tree reads back.
func TestYAMLAndJSONAreSameTree(t *testing.T) {
	t.Parallel()
	yaml := "\ufeffmodels:\n  - &x {b: 1.50, c: \"no\"}\n  - {<<: *x, c: \"yes\", l: [true, null, \"text\"]}\nlines:\n  - {id: \"a\"}\n"
	json := `{"models":[{"b":1.50,"c":"no"},{"b":1.50,"c":"yes","l":[true,null,"text"]}],"lines":[{"id":"a"}]}`
	want := ""
	for _, text := range []string{yaml, json} {
		root, err := Read([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, printed := range []string{string(JSON(root, "")), string(JSON(root, "  ")), string(YAML(root))} {
			again, err := Read([]byte(printed))
			if err != nil {
				t.Fatalf("Read(%s): error %v, want none", printed, err)
			}
			want = cmp.Or(want, Flow(again))
			if got := Flow(again); got != want {
				t.Errorf("Read(%s) = %s, want %s", printed, got, want)
			}
		}
	}
}
