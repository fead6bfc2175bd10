package archtest

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// TestPackagesHoldNoState refuses init functions and mutable package-level variables. A variable
// must get its value where it is declared and never be written again. Exported ones must be errors,
// because another package could write them.
func TestPackagesHoldNoState(t *testing.T) {
	t.Parallel()
	tree := source(t)
	written := map[string]bool{} // "folder name" of every written variable
	for _, f := range tree.files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			for _, target := range targets(n) {
				written[f.folder+" "+target] = true
			}
			return true
		})
	}
	for _, f := range tree.files {
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s: an init function; construct it where it is used", tree.at(d))
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				for _, spec := range d.Specs {
					s := spec.(*ast.ValueSpec) // a var declaration has no other specs
					for _, name := range s.Names {
						switch {
						case name.Name == "_", embedded(d, s):
						case len(s.Values) == 0:
							t.Errorf("%s: package-level variable %s gets its value later; make it a field", tree.at(name), name.Name)
						case written[f.folder+" "+name.Name]:
							t.Errorf("%s: package-level variable %s is written; make it a field", tree.at(name), name.Name)
						case name.IsExported() && !f.test && !isError(name.Name):
							t.Errorf("%s: exported variable %s could be written by anyone; make it a function or constant", tree.at(name), name.Name)
						}
					}
				}
			}
		}
	}
}

// targets returns the names written by a statement, including fields, indexes and addresses. A
// local variable of the same name counts too: rename it.
func targets(n ast.Node) []string {
	var exprs []ast.Expr
	switch s := n.(type) {
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			exprs = s.Lhs
		}
	case *ast.IncDecStmt:
		exprs = []ast.Expr{s.X}
	case *ast.UnaryExpr:
		if s.Op == token.AND {
			exprs = []ast.Expr{s.X}
		}
	case *ast.CallExpr:
		if name, ok := s.Fun.(*ast.Ident); ok && len(s.Args) > 0 && (name.Name == "delete" || name.Name == "clear") {
			exprs = s.Args[:1]
		}
	}
	var names []string
	for _, expr := range exprs {
		for expr != nil {
			switch e := expr.(type) {
			case *ast.Ident:
				names = append(names, e.Name)
				expr = nil
			case *ast.SelectorExpr:
				expr = e.X
			case *ast.IndexExpr:
				expr = e.X
			case *ast.StarExpr:
				expr = e.X
			case *ast.ParenExpr:
				expr = e.X
			default:
				expr = nil
			}
		}
	}
	return names
}

// isError reports whether name is the name of a sentinel error.
func isError(name string) bool {
	rest, ok := strings.CutPrefix(name, "Err")
	return ok && ast.IsExported(rest)
}

// embedded reports whether the compiler fills a variable from a file.
func embedded(d *ast.GenDecl, s *ast.ValueSpec) bool {
	for _, doc := range []*ast.CommentGroup{d.Doc, s.Doc} {
		if doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") }) {
			return true
		}
	}
	return false
}

// TestTestsNeitherSleepNorSkip refuses time.Sleep in tests, except with testing/synctest, and
// skipped tests. The only skip is storetest's without PostgreSQL, and `make test` then fails at its
// end.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	t.Parallel()
	tree := source(t)
	for _, f := range tree.files {
		if !f.test && !testOnly(f.folder) {
			continue
		}
		fakeClock := slices.Contains(f.imports, "testing/synctest")
		ast.Inspect(f.ast, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			on, ok := call.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch {
			case on.Name == "time" && call.Sel.Name == "Sleep" && !fakeClock:
				t.Errorf("%s: sleeps; wait for what it waits for, or use testing/synctest", tree.at(n))
			case f.folder == "internal/store/storetest":
			case on.Name == "t" && (call.Sel.Name == "Skip" || call.Sel.Name == "Skipf" || call.Sel.Name == "SkipNow"):
				t.Errorf("%s: a test that leaves itself out proves nothing; let it fail and say what it needs", tree.at(n))
			}
			return true
		})
	}
}
