package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentShowsTheErrors: docs/errors-inside.md lists every error that crosses packages (a
// sentinel, or a type with an Error method), and no other.
func TestDocumentShowsTheErrors(t *testing.T) {
	t.Parallel()
	exist := map[string]string{} // place by name
	tree := source(t)
	for _, f := range tree.files {
		if f.test || testOnly(f.folder) || strings.HasPrefix(f.folder, "bench") {
			continue
		}
		for _, decl := range f.ast.Decls {
			for _, name := range errorsOf(decl) {
				if ast.IsExported(name.Name) {
					exist[path.Base(f.folder)+"."+name.Name] = tree.at(name)
				}
			}
		}
	}
	if len(exist) < 20 {
		t.Fatalf("only %d errors found: is the search right?", len(exist))
	}
	shown := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+\\.[A-Z][A-Za-z]+)`").FindAllStringSubmatch(read(t, "docs/errors-inside.md"), -1) {
		shown[m[1]] = true
	}
	for name, at := range exist {
		if !shown[name] {
			t.Errorf("docs/errors-inside.md: does not say who gets %s (%s) and what becomes of it", name, at)
		}
	}
	for name := range shown {
		_, after, _ := strings.Cut(name, ".")
		if _, ok := exist[name]; !ok && strings.HasPrefix(after, "Err") {
			t.Errorf("docs/errors-inside.md: %s does not exist", name)
		}
	}
}

// errorsOf returns the errors of a declaration: variables named Err…, and the receiver of a
// method Error() string.
func errorsOf(decl ast.Decl) (names []*ast.Ident) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil && d.Name.Name == "Error" && len(d.Type.Params.List) == 0 {
			names = append(names, &ast.Ident{NamePos: d.Name.NamePos, Name: receiver(d)})
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR {
			break
		}
		for _, spec := range d.Specs {
			for _, name := range spec.(*ast.ValueSpec).Names { // a var declaration has no other specs
				if isError(name.Name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
