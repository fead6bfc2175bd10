package archtest

import (
	"go/ast"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/admin"
	"tollgate/internal/api"
)

// TestDocumentsShowTheRoutes compares the served paths with the documents' tables in both
// directions.
func TestDocumentsShowTheRoutes(t *testing.T) {
	t.Parallel()
	compareRoutes(t, "docs/interface.md", api.Routes(), documentedRoutes(t, "docs/interface.md", "what it answers", ""))
	compareRoutes(t, "docs/operator.md", admin.Routes(), documentedRoutes(t, "docs/operator.md", "body and answer", admin.Base))
}

// TestDocumentShowsTheProcessPaths checks that the operators' document has the paths of the process
// itself.
func TestDocumentShowsTheProcessPaths(t *testing.T) {
	t.Parallel()
	document, found := read(t, "docs/operator.md"), 0
	for _, f := range source(t).files {
		if f.room != "internal/app" || f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			pair, ok := n.(*ast.KeyValueExpr)
			if !ok || lastName(pair.Key) != "Pattern" {
				return true
			}
			literal, ok := pair.Value.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: write the pattern where the route is, so that it can be found", source(t).at(pair))
				return true
			}
			pattern, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if _, path, _ := strings.Cut(pattern, " "); !strings.Contains(document, path+"`") {
				t.Errorf("docs/operator.md: the path %s is missing", pattern)
			}
			return true
		})
	}
	if found < 3 {
		t.Errorf("found %d paths in internal/app, want at least 3", found)
	}
}

// compareRoutes reports the differences between the served and the documented routes.
func compareRoutes(t *testing.T, document string, served, shown []string) {
	t.Helper()
	if len(served) < 10 || len(shown) < 10 {
		t.Fatalf("%s: found %d served and %d shown paths, want at least 10 of each", document, len(served), len(shown))
	}
	for _, route := range served {
		if !slices.Contains(shown, route) {
			t.Errorf("%s: its table of paths lacks %s", document, route)
		}
	}
	for _, route := range shown {
		if !slices.Contains(served, route) {
			t.Errorf("%s: %s is not served", document, route)
		}
	}
}

// documentedRoutes returns the routes in the first cells of a table: `GET /x`, `GET/PATCH /x/{id}`.
func documentedRoutes(t *testing.T, document, second, base string) (routes []string) {
	t.Helper()
	code, segment := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`\{[a-z]+\}`)
	for _, cells := range tableRows(read(t, document), "method and path", second) {
		for _, m := range code.FindAllStringSubmatch(cells[0], -1) {
			methods, path, ok := strings.Cut(m[1], " ")
			if !ok {
				t.Errorf("%s: %q has no method", document, m[1])
			}
			for method := range strings.SplitSeq(methods, "/") {
				routes = append(routes, method+" "+base+segment.ReplaceAllString(path, "{id}"))
			}
		}
	}
	return routes
}
