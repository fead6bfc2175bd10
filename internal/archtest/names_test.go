package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// maxNames is how many exported names a room may show to others: declarations of
// functions, types, constants and variables, a group of these as one, as `go doc`
// lists them; what stands below an internal folder is seen by nobody.
var maxNames = map[string]int{"internal/wire": 119}

// TestRoomsShowFewNames: what a room shows has to be learned by whoever uses it.
func TestRoomsShowFewNames(t *testing.T) {
	t.Parallel()
	shown := map[string][]string{}
	for _, f := range source(t).files {
		below, _ := strings.CutPrefix(f.folder, f.room)
		if maxNames[f.room] == 0 || f.test || testOnly(f.folder) || strings.Contains(below+"/", "/internal/") {
			continue
		}
		for _, decl := range f.ast.Decls {
			if name := shownBy(decl); name != "" {
				shown[f.room] = append(shown[f.room], f.path+" "+name)
			}
		}
	}
	for room, limit := range maxNames {
		if n := len(shown[room]); n == 0 || n > limit {
			t.Errorf("%s shows %d names, at most %d may be; move what no other room uses below one of its internal folders:\n%s",
				room, n, limit, strings.Join(shown[room], "\n"))
		}
	}
}

// shownBy is the exported name that a declaration makes, the first of a group.
func shownBy(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil && d.Name.IsExported() {
			return d.Name.Name
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					return s.Name.Name
				}
			case *ast.ValueSpec:
				for _, name := range s.Names {
					if name.IsExported() {
						return name.Name
					}
				}
			}
		}
	}
	return ""
}
