package wiretest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tollgate/internal/fault"
)

// RefusesOtherCase checks that check, given a member to add to a valid body, rejects each field in
// capitals or with a letter outside ASCII that folds into it, and nothing else.
func RefusesOtherCase(t *testing.T, fields []string, check func(member string) error) {
	t.Helper()
	for _, field := range fields {
		for _, name := range []string{
			strings.ToUpper(field), strings.ToUpper(field[:1]) + field[1:], strings.ToLower(field),
			strings.Replace(field, "s", "ſ", 1), strings.Replace(field, "k", "\u212a", 1),
		} {
			if name == field {
				continue
			}
			for _, value := range []string{"1", `"x"`, "null"} {
				if code, param := CodeOf(t, check(strconv.Quote(name)+":"+value)); code != fault.InvalidRequest || param != name {
					t.Errorf("%s: %s, param %q", name, code, param)
				}
			}
		}
	}
	for _, name := range []string{"Xyz", "xSTREAM", "ünknown", "Metadata2"} {
		if err := check(strconv.Quote(name) + ":1"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ReadsOnly checks that the code in the files reads no top-level fields except the given ones, and
// at least least of them.
func ReadsOnly(t *testing.T, least int, fields []string, patterns ...string) {
	t.Helper()
	seen := 0
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				for _, field := range fieldsRead(fn) {
					seen++
					if !slices.Contains(fields, field) {
						t.Errorf("%s: %s reads %q, which is not in the form's list", name, fn.Name.Name, field)
					}
				}
			}
		}
	}
	if seen < least {
		t.Errorf("only %d reads were found: the test looks for what is not there", seen)
	}
}

// fieldsRead returns the names passed by a function to Raw, Find, word, count or either, directly or in a
// loop over a list of words.
func fieldsRead(fn *ast.FuncDecl) (names []string) {
	words := func(n ast.Node) (out []string) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if word, err := strconv.Unquote(lit.Value); err == nil {
					out = append(out, word)
				}
			}
			return true
		})
		return out
	}
	consts := map[string][]string{} // local names of words
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if key, ok := n.Value.(*ast.Ident); ok {
				if _, ok := n.X.(*ast.CompositeLit); ok {
					consts[key.Name] = words(n.X)
				}
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					consts[name.Name] = words(n.Values[i])
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && i < len(n.Rhs) {
					if lit, ok := n.Rhs[i].(*ast.BasicLit); ok {
						consts[id.Name] = append(consts[id.Name], words(lit)...)
					}
				}
			}
		}
		return true
	})
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Raw", "Find", "word", "count", "either"}, method.Sel.Name) {
			return true
		}
		switch arg := call.Args[0].(type) {
		case *ast.BasicLit:
			names = append(names, words(arg)...)
		case *ast.Ident:
			names = append(names, consts[arg.Name]...)
		}
		return true
	})
	return names
}
