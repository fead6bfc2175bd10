package sandbox

import (
	"os"
	"strings"
	"testing"
)

// TestFailuresAreDocumented checks that the operator's guide lists exactly the values of the option
// fail.
func TestFailuresAreDocumented(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../docs/operator.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(raw), "| `fail` | meets | what happens |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/operator.md has no table of failures")
	}
	kinds := map[string]bool{}
	for _, kind := range failKinds() {
		kinds[kind] = false
	}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) < 4 {
			break
		}
		for name := range strings.SplitSeq(cells[1], ",") {
			name = strings.Trim(strings.TrimSpace(name), "`")
			if _, ok := kinds[name]; !ok {
				t.Errorf("docs/operator.md names the failure %q, which does not exist", name)
			}
			kinds[name] = true
		}
	}
	for kind, documented := range kinds {
		if !documented {
			t.Errorf("docs/operator.md does not name the failure %s", kind)
		}
	}
}
