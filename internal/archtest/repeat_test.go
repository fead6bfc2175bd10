package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// TestTransactionsCanBeRepeated refuses a function of a transaction that adds to a variable of its
// surroundings without setting the variable first, because the database may ask for a retry. The
// test finds appends, additions and writes to elements in the function itself.
func TestTransactionsCanBeRepeated(t *testing.T) {
	t.Parallel()
	tree := source(t)
	functions := 0
	for _, f := range product(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			lit, ok := n.(*ast.FuncLit)
			if !ok || !takesTransaction(lit.Type) {
				return true
			}
			functions++
			for _, target := range unrepeatable(lit) {
				t.Errorf("%s: the transaction adds to %s, and may run again: set it at the start of the function", tree.at(target),
					types.ExprString(target))
			}
			return true
		})
	}
	if functions < 100 {
		t.Errorf("found %d functions of transactions, want at least 100", functions)
	}
}

// TestUnrepeatable checks the rule of TestTransactionsCanBeRepeated on examples.
func TestUnrepeatable(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`list = append(list, 1)`: 1,
		`n++`:                    1,
		`p.sum += 2`:             1,
		`seen[id] = true`:        1,
		`for range 2 { p.list = append(p.list, 1) }`:   1,
		`func() { n++ }()`:                             1,
		`list = nil; list = append(list, 1)`:           0,
		`clear(seen); seen[id] = true`:                 0,
		`p = page{}; p.list = append(p.list, 1)`:       0,
		`var mine []int; mine = append(mine, 1)`:       0,
		`for i := range list { i++ }`:                  0,
		`n, err = read(); n++`:                         0,
		`both[0], err = read()`:                        0,
		`own := func(k int) { k++ }; own(1)`:           0,
		`list = append([]int(nil), other...); n = n*0`: 0,
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", `package p; var _ = func(tx *store.Tx) { `+body+` }`, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.FuncLit); ok && takesTransaction(lit.Type) {
				if got := unrepeatable(lit); len(got) != want {
					t.Errorf("%s: got %d targets, want %d", body, len(got), want)
				}
			}
			return true
		})
	}
}

// takesTransaction reports whether a function has a parameter of the type *store.Tx.
func takesTransaction(f *ast.FuncType) bool {
	for _, p := range f.Params.List {
		if types.ExprString(p.Type) == "*store.Tx" {
			return true
		}
	}
	return false
}

// unrepeatable returns the variables from outside a function that the function adds to without
// setting them.
func unrepeatable(lit *ast.FuncLit) (found []ast.Expr) {
	own, set := map[string]bool{}, map[string]bool{}
	var added []ast.Expr
	ast.Inspect(lit, func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.Field: // a parameter or result
			for _, name := range s.Names {
				own[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				own[name.Name] = true
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{s.Key, s.Value} {
				if name, ok := e.(*ast.Ident); ok && s.Tok == token.DEFINE {
					own[name.Name] = true
				}
			}
		case *ast.IncDecStmt:
			added = append(added, s.X)
		case *ast.CallExpr:
			if types.ExprString(s.Fun) == "clear" && len(s.Args) == 1 {
				set[types.ExprString(s.Args[0])] = true
			}
		case *ast.AssignStmt:
			for i, target := range s.Lhs {
				text := types.ExprString(target)
				switch {
				case s.Tok == token.DEFINE:
					own[text] = true
				case isElement(target), s.Tok != token.ASSIGN, appends(s, i):
					added = append(added, target)
				default:
					set[text] = true
				}
			}
		}
		return true
	})
	for _, target := range added {
		if !own[rootOf(target)] && !isSet(target, set) {
			found = append(found, target)
		}
	}
	return found
}

// isElement reports whether a target is an element at an index other than a number.
func isElement(target ast.Expr) bool {
	e, ok := target.(*ast.IndexExpr)
	if !ok {
		return false
	}
	_, number := e.Index.(*ast.BasicLit)
	return !number
}

// appends reports whether an assignment appends to its i-th target.
func appends(s *ast.AssignStmt, i int) bool {
	if len(s.Rhs) != len(s.Lhs) {
		return false
	}
	call, ok := s.Rhs[i].(*ast.CallExpr)
	return ok && len(call.Args) > 0 && types.ExprString(call.Fun) == "append" &&
		types.ExprString(call.Args[0]) == types.ExprString(s.Lhs[i])
}

// rootOf returns the name of the variable that holds a target.
func rootOf(target ast.Expr) string {
	for {
		switch e := target.(type) {
		case *ast.SelectorExpr:
			target = e.X
		case *ast.IndexExpr:
			target = e.X
		case *ast.StarExpr:
			target = e.X
		case *ast.ParenExpr:
			target = e.X
		default:
			return types.ExprString(target)
		}
	}
}

// isSet reports whether a target, or a variable that contains the target, is set.
func isSet(target ast.Expr, set map[string]bool) bool {
	text := types.ExprString(target)
	for name := range set {
		if rest, ok := strings.CutPrefix(text, name); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}
