package archtest

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentShowsTheErrors checks that docs/errors-inside.md lists every exported error (a
// variable named Err…, or a type with an Error method), and no error that does not exist.
func TestDocumentShowsTheErrors(t *testing.T) {
	t.Parallel()
	declared := map[string]string{} // position by name
	tree := source(t)
	for _, f := range product(t) {
		for _, decl := range f.ast.Decls {
			for _, name := range errorsOf(decl) {
				if ast.IsExported(name.Name) {
					declared[path.Base(f.folder)+"."+name.Name] = tree.at(name)
				}
			}
		}
	}
	if len(declared) < 20 {
		t.Fatalf("found %d errors, want at least 20", len(declared))
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+\\.[A-Z][A-Za-z]+)`").FindAllStringSubmatch(read(t, "docs/errors-inside.md"), -1) {
		documented[m[1]] = true
	}
	for name, at := range declared {
		if !documented[name] {
			t.Errorf("docs/errors-inside.md: %s (%s) is missing: add its receiver and its handling", name, at)
		}
	}
	for name := range documented {
		_, after, _ := strings.Cut(name, ".")
		if _, ok := declared[name]; !ok && strings.HasPrefix(after, "Err") {
			t.Errorf("docs/errors-inside.md: %s does not exist", name)
		}
	}
}

// errorsOf returns the errors of a declaration: variables named Err…, and the receiver type of an
// Error method without parameters.
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
