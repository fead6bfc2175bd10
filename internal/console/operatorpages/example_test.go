package operatorpages_test

import (
	"strings"
	"testing"

	"tollgate/internal/app"
	"tollgate/internal/catalog"
	"tollgate/internal/console/operatorpages"
)

// TestExamplesApply checks that each example, and all examples combined, are valid catalogs with a
// usable line for each model.
func TestExamplesApply(t *testing.T) {
	t.Parallel()
	models, lines := "", ""
	check := func(name, text string) {
		t.Helper()
		doc, warnings, err := catalog.Parse([]byte(text), app.Providers())
		if err != nil || len(warnings) > 0 {
			t.Fatalf("the example %s has the warnings %v and the error %v, want none", name, warnings, err)
		}
		for i := range doc.Models {
			snapshot := catalog.NewSnapshot(1, doc, app.Providers(), func(string) (string, bool) { return "secret", true })
			if got := snapshot.Lines(doc.Models[i].ID); len(got) != 1 || got[0].UnusableReason != "" {
				t.Errorf("%s: model %s has %d lines, want one usable line: %+v", name, doc.Models[i].ID, len(got), got)
			}
		}
	}
	for _, e := range operatorpages.Examples().Tabs {
		check(e.Name.String(), e.Text.String())
		modelText, lineText, _ := strings.Cut(strings.TrimPrefix(e.Text.String(), "models:\n"), "lines:\n")
		models, lines = models+modelText, lines+lineText
	}
	check("all", "models:\n"+models+"lines:\n"+lines)
}
