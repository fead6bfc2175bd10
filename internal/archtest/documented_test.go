package archtest

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// TestEveryPackageSaysWhatItOwns requires one package comment per package with its concept and its
// invariants.
func TestEveryPackageSaysWhatItOwns(t *testing.T) {
	t.Parallel()
	comments := map[string]string{}
	for _, f := range source(t).files {
		if f.test {
			continue
		}
		if _, ok := comments[f.folder]; !ok {
			comments[f.folder] = ""
		}
		if f.ast.Doc == nil {
			continue
		}
		if comments[f.folder] != "" {
			t.Errorf("%s: a second package comment in %s", f.path, f.folder)
		}
		comments[f.folder] = f.ast.Doc.Text()
	}
	for folder, text := range comments {
		text = strings.Join(strings.Fields(text), " ")
		first, _, _ := strings.Cut(text, ". ")
		switch {
		case text == "":
			t.Errorf("%s: no package comment", folder)
		case !strings.Contains(first, " owns "):
			t.Errorf("%s: the package comment's first sentence must say what it owns: %q", folder, first)
		case !strings.Contains(strings.ToLower(text), "invariant"):
			t.Errorf("%s: the package comment names no invariants", folder)
		}
	}
}

// TestEveryExportedNameIsDocumented checks that every exported type, function, method, interface method,
// constant and variable has a comment. The comment of a group of constants or variables counts for all.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()
	tree := source(t)
	names := 0
	check := func(n ast.Node, kind, name string, docs ...*ast.CommentGroup) {
		if !ast.IsExported(name) {
			return
		}
		names++
		for _, doc := range docs {
			if doc != nil && strings.TrimSpace(doc.Text()) != "" {
				return
			}
		}
		t.Errorf("%s: exported %s %s has no comment", tree.at(n), kind, name)
	}
	for _, f := range tree.files {
		if f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || ast.IsExported(receiver(d)) {
					check(d, "function", d.Name.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						checkType(check, d, s)
					case *ast.ValueSpec:
						for _, name := range s.Names {
							check(name, d.Tok.String(), name.Name, s.Doc, s.Comment, d.Doc)
						}
					}
				}
			}
		}
	}
	if names < 1000 {
		t.Errorf("found %d exported names, want at least 1000", names)
	}
}

// checkType calls check with a type and, for an interface, with its methods.
func checkType(check func(ast.Node, string, string, ...*ast.CommentGroup), d *ast.GenDecl, s *ast.TypeSpec) {
	doc := s.Doc
	if doc == nil && d.Lparen == token.NoPos {
		doc = d.Doc
	}
	check(s, "type", s.Name.Name, doc)
	methods, ok := s.Type.(*ast.InterfaceType)
	if !ok || !s.Name.IsExported() {
		return
	}
	for _, method := range methods.Methods.List {
		for _, name := range method.Names {
			check(name, "method", s.Name.Name+"."+name.Name, method.Doc, method.Comment)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	expr := d.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}
